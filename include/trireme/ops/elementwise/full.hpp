#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor filled with `value`: Tensor::full for a number that the host may not know. S is T, or double, which is rounded to T.
template <typename T, typename S, typename D>
TRIREME_EXPORT Tensor<T, D> full(const Shape& shape, const Scalar<S, D>& value);

}  // namespace ops
}  // namespace trireme
