#pragma once

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/experts/experts.hpp"

// The functions of ops/experts/experts.hpp for any device: ExpertWork<D> does the work.
namespace trireme::ops {

template <typename D>
struct ExpertWork {
  template <typename T>
  static void take(const ExpertRows& rows, const Tensor<T, D>& x, Tensor<T, D>& y);
  template <typename T>
  static void take_backward(const ExpertRows& rows, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);
  template <typename T>
  static void linear(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<T, D>& weight, Tensor<T, D>& y);
  template <typename T>
  static void input_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& weight, Tensor<T, D>& dx,
                             bool accumulate);
  template <typename T>
  static void weight_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                              Tensor<Accumulate<T>, D>& dweight, bool accumulate);
  template <typename T>
  static void combine(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& weights, Tensor<T, D>& y);
  template <typename T>
  static void combine_backward(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                               const Tensor<Accumulate<T>, D>& weights, Tensor<T, D>& dx, Tensor<Accumulate<T>, D>& dweights);
};

// Requires the shape [count, width], with any width.
template <typename T, typename D>
void require_rows(std::string_view op, std::string_view name, const Tensor<T, D>& had, std::int64_t count) {
  require_defined(op, name, had);
  require(had.shape().size() == 2 && had.dim(0) == count, "{}: {} has shape {}, but needs {} rows", op, name, had.shape(),
          count);
}

// Requires a weight[experts * out, in].
template <typename T, typename D>
void require_expert_weight(const ExpertRows& rows, const Tensor<T, D>& x, const Shape& weight, const Tensor<T, D>& y) {
  require_rows("expert_linear", "x", x, rows.count());
  require_rows("expert_linear", "y", y, rows.count());
  require(weight == Shape({rows.experts() * y.dim(1), x.dim(1)}),
          "expert_linear: a weight {} of {} experts does not fit x {} and y {}", weight, rows.experts(), x.shape(), y.shape());
}

template <typename T, typename D>
void take_expert_rows(const ExpertRows& rows, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_rows("take_expert_rows", "x", x, rows.tokens);
  require_shape("take_expert_rows", "y", y, {rows.count(), x.dim(1)});
  ExpertWork<D>::take(rows, x, y);
}

template <typename T, typename D>
void take_expert_rows_backward(const ExpertRows& rows, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_rows("take_expert_rows", "dy", dy, rows.count());
  require_shape("take_expert_rows", "dx", dx, {rows.tokens, dy.dim(1)});
  ExpertWork<D>::take_backward(rows, dy, dx, accumulate);
}

template <typename T, typename D>
void expert_linear(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<T, D>& weight, Tensor<T, D>& y) {
  require_expert_weight(rows, x, weight.shape(), y);
  ExpertWork<D>::linear(rows, x, weight, y);
}

template <typename T, typename D>
void expert_linear_input_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& weight, Tensor<T, D>& dx,
                                  bool accumulate) {
  require_expert_weight(rows, dx, weight.shape(), dy);
  ExpertWork<D>::input_gradient(rows, dy, weight, dx, accumulate);
}

template <typename T, typename D>
void expert_linear_weight_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                                   Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  require_expert_weight(rows, x, dweight.shape(), dy);
  ExpertWork<D>::weight_gradient(rows, dy, x, dweight, accumulate);
}

template <typename T, typename D>
void combine_expert_rows(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& weights,
                         Tensor<T, D>& y) {
  require_rows("combine_expert_rows", "x", x, rows.count());
  require_shape("combine_expert_rows", "weights", weights, {rows.tokens, rows.choices});
  require_shape("combine_expert_rows", "y", y, {rows.tokens, x.dim(1)});
  ExpertWork<D>::combine(rows, x, weights, y);
}

template <typename T, typename D>
void combine_expert_rows_backward(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                                  const Tensor<Accumulate<T>, D>& weights, Tensor<T, D>& dx,
                                  Tensor<Accumulate<T>, D>& dweights) {
  require_rows("combine_expert_rows", "x", x, rows.count());
  require_shape("combine_expert_rows", "weights", weights, {rows.tokens, rows.choices});
  require_shape("combine_expert_rows", "dy", dy, {rows.tokens, x.dim(1)});
  if (dx.defined()) require_shape("combine_expert_rows", "dx", dx, x.shape());
  if (dweights.defined()) require_shape("combine_expert_rows", "dweights", dweights, weights.shape());
  ExpertWork<D>::combine_backward(rows, dy, x, weights, dx, dweights);
}

}  // namespace trireme::ops
