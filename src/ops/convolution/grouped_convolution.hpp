#pragma once

#include "ops/convolution/convolution_shape.hpp"

// Convolutions whose groups have 1, 2 or 4 channels, as many in as out: depthwise ones (Howard et al. 2017, arXiv 1704.04861)
// and those of ResNeXt (Xie et al. 2017, arXiv 1611.05431). A matrix product would sum over very few elements, so they are
// computed as products of vectors of channels (grouped_kernels.hpp).
namespace trireme::ops {

// Whether a pass is faster this way.
bool suits_grouped(const ConvolutionShape& shape);  // forward
bool data_suits_grouped(const ConvolutionShape& shape);
bool weight_suits_grouped(const ConvolutionShape& shape);

void grouped_forward(const ConvolutionShape& shape, const float* x, const float* weight, const float* bias, float* y);
void grouped_data(const ConvolutionShape& shape, const float* dy, const float* weight, float* dx);
void grouped_weight(const ConvolutionShape& shape, const float* x, const float* dy, float* dweight);

}  // namespace trireme::ops
