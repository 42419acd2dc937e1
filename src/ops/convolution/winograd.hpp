#pragma once

#include "ops/convolution/convolution_shape.hpp"

// Convolutions with kernels of 3 x 3 by Winograd's minimal filtering: a quarter of the multiplications, in 36 products of
// matrices, between transforms of the image, the weight and the result (winograd_kernels.hpp).
namespace trireme::ops {

// Whether a convolution is faster this way.
bool suits_winograd(const ConvolutionShape& shape);

void winograd_forward(const ConvolutionShape& shape, const float* x, const float* weight, const float* bias, float* y);
void winograd_data(const ConvolutionShape& shape, const float* dy, const float* weight, float* dx);
void winograd_weight(const ConvolutionShape& shape, const float* x, const float* dy, float* dweight);

}  // namespace trireme::ops
