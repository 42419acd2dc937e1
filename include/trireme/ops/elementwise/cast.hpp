#pragma once

#include <cstdint>
#include <type_traits>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Converts x to another element type, rounded to nearest, ties to even. float can be converted to and from bfloat16, float16
// and double; bool, std::int32_t and std::int64_t can be converted to float, double, std::int32_t and std::int64_t. Integers
// wrap around.
template <typename From, typename To, typename D>
TRIREME_EXPORT void cast(const Tensor<From, D>& x, Tensor<To, D>& y, bool accumulate = false);

// Whether ops::cast() converts From to To.
template <typename From, typename To>
inline constexpr bool can_cast = std::is_same_v<From, To> || [] {
  constexpr bool has_float = std::is_same_v<From, float> || std::is_same_v<To, float>;
  if constexpr (std::is_integral_v<From>) return !std::is_same_v<To, bool> && std::is_arithmetic_v<To> && sizeof(To) >= 4;
  return has_float && !std::is_integral_v<To> && sizeof(From) > 1 && sizeof(To) > 1;
}();

}  // namespace ops

// cast<float>(sum(x > 0, 1)), for the types of ops::cast(). autograd/operations/elementwise.hpp has cast() of Variables.
template <typename To, typename From, typename D>
requires ops::can_cast<From, To> Tensor<To, D> cast(const Tensor<From, D>& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    Tensor<To, D> y(x.shape());
    ops::cast(x, y);
    return y;
  }
}

}  // namespace trireme
