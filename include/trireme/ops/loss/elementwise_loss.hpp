#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/loss/elementwise_loss_kind.hpp"
#include "trireme/tensor/scalar.hpp"

// Losses that compare two tensors of one shape element by element.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Returns the sum over all elements, accumulated in double. For an x of bfloat16 or float16 the target is float.
template <typename T, typename D>
TRIREME_EXPORT Scalar<double, D> elementwise_loss(ElementwiseLoss kind, const Tensor<T, D>& x,
                                                  const Tensor<Accumulate<T>, D>& target,
                                                  const ElementwiseLossOptions& options = {});

// dx = scale * the derivative with respect to x.
template <typename T, typename D>
TRIREME_EXPORT void elementwise_loss_backward(ElementwiseLoss kind, const Tensor<T, D>& x,
                                              const Tensor<Accumulate<T>, D>& target, const ScalarFor<T, D>& scale,
                                              Tensor<T, D>& dx, bool accumulate, const ElementwiseLossOptions& options = {});

}  // namespace ops
}  // namespace trireme
