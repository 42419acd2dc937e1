#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor filled with `value`, as Tensor::full, but the host need not know the number. S is T or double; a double is rounded
// to T.
template <typename T, typename S, typename D>
TRIREME_EXPORT Tensor<T, D> full(const Shape& shape, const Scalar<S, D>& value);

}  // namespace ops
}  // namespace trireme
