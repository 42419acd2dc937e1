#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor whose elements all are `value`, of type T or rounded to it from double: Tensor::full of a number that the host may
// not know.
template <typename T, typename S, typename D>
TRIREME_EXPORT Tensor<T, D> full(const Shape& shape, const Scalar<S, D>& value);

}  // namespace ops
}  // namespace trireme
