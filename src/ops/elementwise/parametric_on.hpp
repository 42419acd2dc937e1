#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"

// leaky_relu and softplus of ops/elementwise/elementwise.hpp for any device: Parametric<D> does the work.
namespace trireme::ops {

template <typename D>
struct Parametric {
  template <typename T>
  static void leaky_relu(std::int64_t count, const T* x, Accumulate<T> slope, T* y);
  template <typename T>
  static void leaky_relu_backward(std::int64_t count, const T* x, Accumulate<T> slope, const T* dy, T* dx, bool accumulate);
  template <typename T>
  static void softplus(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, T* y);
  template <typename T>
  static void softplus_backward(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, const T* dy, T* dx,
                                bool accumulate);
};

inline void require_valid(const SoftplusOptions& options) {
  require(options.beta > 0, "softplus: beta is {}, but must be above 0", options.beta);
}

template <typename T, typename D>
void leaky_relu(const Tensor<T, D>& x, double slope, Tensor<T, D>& y) {
  require_defined("leaky_relu", "x", x);
  require_shape("leaky_relu", "y", y, x.shape());
  Parametric<D>::leaky_relu(x.numel(), x.data(), static_cast<Accumulate<T>>(slope), y.data());
}

template <typename T, typename D>
void leaky_relu_backward(const Tensor<T, D>& x, double slope, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_defined("leaky_relu_backward", "x", x);
  require_shape("leaky_relu_backward", "dy", dy, x.shape());
  require_shape("leaky_relu_backward", "dx", dx, x.shape());
  Parametric<D>::leaky_relu_backward(x.numel(), x.data(), static_cast<Accumulate<T>>(slope), dy.data(), dx.data(), accumulate);
}

template <typename T, typename D>
void softplus(const Tensor<T, D>& x, const SoftplusOptions& options, Tensor<T, D>& y) {
  using A = Accumulate<T>;
  require_valid(options);
  require_defined("softplus", "x", x);
  require_shape("softplus", "y", y, x.shape());
  Parametric<D>::softplus(x.numel(), x.data(), static_cast<A>(options.beta), static_cast<A>(options.threshold), y.data());
}

template <typename T, typename D>
void softplus_backward(const Tensor<T, D>& x, const SoftplusOptions& options, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                       bool accumulate) {
  using A = Accumulate<T>;
  require_valid(options);
  require_defined("softplus_backward", "x", x);
  require_shape("softplus_backward", "dy", dy, x.shape());
  require_shape("softplus_backward", "dx", dx, x.shape());
  Parametric<D>::softplus_backward(x.numel(), x.data(), static_cast<A>(options.beta), static_cast<A>(options.threshold),
                                   dy.data(), dx.data(), accumulate);
}

}  // namespace trireme::ops
