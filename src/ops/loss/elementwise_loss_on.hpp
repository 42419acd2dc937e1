#pragma once

#include "ops/base/argument_of.hpp"
#include "ops/base/check.hpp"
#include "ops/loss/elementwise_loss_checks.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"

// The operations of ops/loss/elementwise_loss.hpp for any device: ElementwiseLosses<D> does the work.
namespace trireme::ops {

template <typename D>
struct ElementwiseLosses {
  template <typename T>
  static Scalar<double, D> sum(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                               const Accumulate<T>* target);
  template <typename T>
  static void backward(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                       const Accumulate<T>* target, const ScalarArgument<Accumulate<T>>& scale, T* dx, bool accumulate);
};

template <typename T, typename D>
Scalar<double, D> elementwise_loss(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                                   const ElementwiseLossOptions& options) {
  const auto loss = loss_of<Accumulate<T>>("elementwise_loss", kind, options);
  require_defined("elementwise_loss", "x", x);
  require_shape("elementwise_loss", "target", target, x.shape());
  return ElementwiseLosses<D>::sum(loss, x.numel(), x.data(), target.data());
}

template <typename T, typename D>
void elementwise_loss_backward(ElementwiseLoss kind, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                               const ScalarFor<T, D>& scale, Tensor<T, D>& dx, bool accumulate,
                               const ElementwiseLossOptions& options) {
  const auto loss = loss_of<Accumulate<T>>("elementwise_loss_backward", kind, options);
  require_defined("elementwise_loss_backward", "x", x);
  require_shape("elementwise_loss_backward", "target", target, x.shape());
  require_shape("elementwise_loss_backward", "dx", dx, x.shape());
  ElementwiseLosses<D>::backward(loss, x.numel(), x.data(), target.data(), argument_of(scale), dx.data(), accumulate);
}

}  // namespace trireme::ops
