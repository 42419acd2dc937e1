#pragma once

#include "ops/convolution/convolution_shape.hpp"
#include "trireme/tensor/tensor.hpp"

// Convolutions as products of matrices (Chellapilla, Puri, Simard 2006, "im2col"): each pixel of y is a row of the elements of
// x below the kernel, times the weight in its own layout. oneDNN's convolutions reorder the weight in every call, which takes
// most of the time if there are few pixels. For kernels of 1 x 1, products are also faster for both gradients.
namespace trireme::ops {

bool suits_columns(const ConvolutionShape& shape);           // forward
bool gradient_suits_columns(const ConvolutionShape& shape);  // both gradients

// Returns [pixels of y, in * kernel height * kernel width]; a view of x if its pixels are these rows.
Tensor<float> columns_of(const ConvolutionShape& shape, const Tensor<float>& x);

// Each pixel of x becomes the sum of its places in the columns.
void sum_columns(const ConvolutionShape& shape, const Tensor<float>& columns, Tensor<float>& x);

// A view of the weight as [out, in * kernel height * kernel width].
Tensor<float> weight_matrix(const ConvolutionShape& shape, const Tensor<float>& weight);

}  // namespace trireme::ops
