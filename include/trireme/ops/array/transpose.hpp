#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/array/movement.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The shape of x with dims `first` and `second` exchanged; negative dims count from the end.
Shape transposed_shape(const Shape& shape, int first, int second);

// Copies x to y with two dims exchanged. y: transposed_shape(x.shape(), first, second). T: float, double, bfloat16, float16,
// std::int32_t, std::int64_t, bool.
template <typename T, typename D>
void transpose(const Tensor<T, D>& x, int first, int second, Tensor<T, D>& y) {
  move_elements(transposed(x.shape(), first, second), x, y);
}

}  // namespace ops
}  // namespace trireme
