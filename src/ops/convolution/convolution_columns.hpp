#pragma once

#include "ops/convolution/convolution_shape.hpp"
#include "trireme/tensor/tensor.hpp"

// Convolutions as products of matrices (Chellapilla, Puri, Simard 2006, "im2col"): each pixel of y is a row of what lies below
// the kernel there, times the weight as it lies. oneDNN's convolutions put the weight into another order in every call, which
// takes longer than all else where pixels are few; with a kernel of one pixel products are also faster for both gradients.
namespace trireme::ops {

bool suits_columns(const ConvolutionShape& shape);           // forward
bool gradient_suits_columns(const ConvolutionShape& shape);  // both of them

// [pixels of y, in * kernel height * kernel width]; x itself where its pixels are these rows.
Tensor<float> columns_of(const ConvolutionShape& shape, const Tensor<float>& x);

// Writes into each pixel of x the sum of its places in the columns.
void sum_columns(const ConvolutionShape& shape, const Tensor<float>& columns, Tensor<float>& x);

// [out, in * kernel height * kernel width], which shares the weight's elements.
Tensor<float> weight_matrix(const ConvolutionShape& shape, const Tensor<float>& weight);

}  // namespace trireme::ops
