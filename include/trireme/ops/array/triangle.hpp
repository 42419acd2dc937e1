#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

enum class Triangle : std::uint8_t { upper, lower };

// y[..., row, column] = x inside the triangle, 0 elsewhere. The upper triangle has column - row >= diagonal; the lower
// triangle has column - row <= diagonal. The gradient is the same function of dy. x has 2 dims or more. T: float, double,
// bfloat16, float16, std::int32_t, std::int64_t, bool.
template <typename T, typename D>
TRIREME_EXPORT void take_triangle(Triangle triangle, const Tensor<T, D>& x, std::int64_t diagonal, Tensor<T, D>& y);

}  // namespace ops
}  // namespace trireme
