#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// The shape of x with dims `first` and `second` exchanged; negative dims count from the end.
Shape transposed_shape(const Shape& shape, int first, int second);

// y = x with two dims exchanged, copied. y: transposed_shape(x.shape(), first, second).
template <typename T, typename D>
void transpose(const Tensor<T, D>& x, int first, int second, Tensor<T, D>& y);

}  // namespace trireme::ops
