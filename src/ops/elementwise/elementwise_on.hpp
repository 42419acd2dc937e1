#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"

// The operations of ops/elementwise/elementwise.hpp for any device: Elementwise<D> does the work.
namespace trireme::ops {

// All of `count` elements; the arguments are those of the operations.
template <typename D>
struct Elementwise {
  template <typename T>
  static void activation(Activation kind, std::int64_t count, const T* x, T* y);
  template <typename T>
  static void activation_backward(Activation kind, std::int64_t count, const T* x, const T* dy, T* dx, bool accumulate);
  template <typename T>
  static void gated(Activation kind, std::int64_t count, const T* gate, const T* x, T* y);
  // Either dgate or dx may be null.
  template <typename T>
  static void gated_backward(Activation kind, std::int64_t count, const T* gate, const T* x, const T* dy, T* dgate,
                             bool accumulate_gate, T* dx, bool accumulate);
  template <typename T>
  static void add(std::int64_t count, const T* a, const T* b, T* c);
  template <typename T>
  static void subtract(std::int64_t count, const T* a, const T* b, T* c);
  template <typename T>
  static void multiply(std::int64_t count, const T* a, const T* b, T* c, bool accumulate);
  template <typename T>
  static void divide(std::int64_t count, const T* a, const T* b, T* c, bool accumulate);
  template <typename T>
  static void divide_backward_divisor(std::int64_t count, const T* a, const T* b, const T* dy, T* db, bool accumulate);
  template <typename T>
  static void shift(std::int64_t count, const T* a, Accumulate<T> summand, T* c);
  template <typename T>
  static void scale(std::int64_t count, const T* a, Accumulate<T> factor, T* c, bool accumulate);
};

template <typename T, typename D>
void activation(Activation kind, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_defined("activation", "x", x);
  require_shape("activation", "y", y, x.shape());
  Elementwise<D>::activation(kind, x.numel(), x.data(), y.data());
}

template <typename T, typename D>
void activation_backward(Activation kind, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_defined("activation_backward", "x", x);
  require_shape("activation_backward", "dy", dy, x.shape());
  require_shape("activation_backward", "dx", dx, x.shape());
  Elementwise<D>::activation_backward(kind, x.numel(), x.data(), dy.data(), dx.data(), accumulate);
}

template <typename T, typename D>
void gated_activation(Activation kind, const Tensor<T, D>& gate, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_defined("gated_activation", "gate", gate);
  require_shape("gated_activation", "x", x, gate.shape());
  require_shape("gated_activation", "y", y, gate.shape());
  Elementwise<D>::gated(kind, gate.numel(), gate.data(), x.data(), y.data());
}

template <typename T, typename D>
void gated_activation_backward(Activation kind, const Tensor<T, D>& gate, const Tensor<T, D>& x, const Tensor<T, D>& dy,
                               Tensor<T, D>& dgate, bool accumulate_gate, Tensor<T, D>& dx, bool accumulate) {
  require_defined("gated_activation_backward", "gate", gate);
  require_shape("gated_activation_backward", "x", x, gate.shape());
  require_shape("gated_activation_backward", "dy", dy, gate.shape());
  if (dgate.defined()) require_shape("gated_activation_backward", "dgate", dgate, gate.shape());
  if (dx.defined()) require_shape("gated_activation_backward", "dx", dx, gate.shape());
  if (!dgate.defined() && !dx.defined()) return;
  Elementwise<D>::gated_backward(kind, gate.numel(), gate.data(), x.data(), dy.data(), dgate.defined() ? dgate.data() : nullptr,
                                 accumulate_gate, dx.defined() ? dx.data() : nullptr, accumulate);
}

template <typename T, typename D>
void add(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c) {
  require_defined("add", "a", a);
  require_shape("add", "b", b, a.shape());
  require_shape("add", "c", c, a.shape());
  Elementwise<D>::add(a.numel(), a.data(), b.data(), c.data());
}

template <typename T, typename D>
void subtract(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c) {
  require_defined("subtract", "a", a);
  require_shape("subtract", "b", b, a.shape());
  require_shape("subtract", "c", c, a.shape());
  Elementwise<D>::subtract(a.numel(), a.data(), b.data(), c.data());
}

template <typename T, typename D>
void multiply(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate) {
  require_defined("multiply", "a", a);
  require_shape("multiply", "b", b, a.shape());
  require_shape("multiply", "c", c, a.shape());
  Elementwise<D>::multiply(a.numel(), a.data(), b.data(), c.data(), accumulate);
}

template <typename T, typename D>
void divide(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate) {
  require_defined("divide", "a", a);
  require_shape("divide", "b", b, a.shape());
  require_shape("divide", "c", c, a.shape());
  Elementwise<D>::divide(a.numel(), a.data(), b.data(), c.data(), accumulate);
}

template <typename T, typename D>
void divide_backward_divisor(const Tensor<T, D>& a, const Tensor<T, D>& b, const Tensor<T, D>& dy, Tensor<T, D>& db,
                             bool accumulate) {
  require_defined("divide_backward_divisor", "a", a);
  require_shape("divide_backward_divisor", "b", b, a.shape());
  require_shape("divide_backward_divisor", "dy", dy, a.shape());
  require_shape("divide_backward_divisor", "db", db, a.shape());
  Elementwise<D>::divide_backward_divisor(a.numel(), a.data(), b.data(), dy.data(), db.data(), accumulate);
}

template <typename T, typename D>
void shift(const Tensor<T, D>& a, Accumulate<T> summand, Tensor<T, D>& c) {
  require_defined("shift", "a", a);
  require_shape("shift", "c", c, a.shape());
  Elementwise<D>::shift(a.numel(), a.data(), summand, c.data());
}

template <typename T, typename D>
void scale(const Tensor<T, D>& a, Accumulate<T> factor, Tensor<T, D>& c, bool accumulate) {
  require_defined("scale", "a", a);
  require_shape("scale", "c", c, a.shape());
  Elementwise<D>::scale(a.numel(), a.data(), factor, c.data(), accumulate);
}

}  // namespace trireme::ops
