#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y = x in another element type, to the nearest, ties to even. From, To: float and bfloat16 or float16, either way.
template <typename From, typename To, typename D>
TRIREME_EXPORT void cast(const Tensor<From, D>& x, Tensor<To, D>& y, bool accumulate = false);

}  // namespace ops
}  // namespace trireme
