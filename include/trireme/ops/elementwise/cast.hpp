#pragma once

#include <type_traits>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y = x in another element type, to the nearest, ties to even. From, To: float and bfloat16 or float16, either way; bool,
// std::int32_t and std::int64_t to float, double and each other, where a number that does not fit wraps around.
template <typename From, typename To, typename D>
TRIREME_EXPORT void cast(const Tensor<From, D>& x, Tensor<To, D>& y, bool accumulate = false);

}  // namespace ops

// cast<float>(sum(x != 0, 1)); of Variables: autograd/functions.hpp.
template <typename To, typename From, typename D>
Tensor<To, D> cast(const Tensor<From, D>& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    Tensor<To, D> y(x.shape());
    ops::cast(x, y);
    return y;
  }
}

}  // namespace trireme
