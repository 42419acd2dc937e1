#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

enum class Triangle : std::uint8_t { upper, lower };

// y[..., row, column] = x where it lies in the triangle, 0 elsewhere: at column - row >= diagonal in the upper, <= diagonal in
// the lower one. The gradient of x is the same of that of y. x has 2 dims or more. T: float, double, bfloat16, float16,
// std::int32_t, std::int64_t, bool.
template <typename T, typename D>
TRIREME_EXPORT void take_triangle(Triangle triangle, const Tensor<T, D>& x, std::int64_t diagonal, Tensor<T, D>& y);

}  // namespace ops
}  // namespace trireme
