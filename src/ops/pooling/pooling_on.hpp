#pragma once

#include "ops/base/check.hpp"
#include "ops/pooling/pooling_windows.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/pooling/pooling.hpp"

// The operations of ops/pooling/pooling.hpp for any device: Pooling<D> does the work.
namespace trireme::ops {

template <typename D>
struct Pooling {
  template <typename T>
  static void max(const PoolWindows& windows, const Tensor<T, D>& x, Tensor<T, D>& y, PoolArgmax<D>& argmax);
  template <typename T>
  static void max_backward(const PoolWindows& windows, const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, Tensor<T, D>& dx,
                           bool accumulate);
  template <typename T>
  static void average(const PoolWindows& windows, const Tensor<T, D>& x, Tensor<T, D>& y);
  template <typename T>
  static void average_backward(const PoolWindows& windows, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);
};

namespace pooling {

template <typename T, typename D>
void max(std::string_view op, const PoolWindows& windows, const Tensor<T, D>& x, Tensor<T, D>& y, PoolArgmax<D>& argmax) {
  require_shape(op, "argmax", argmax, y.shape());
  require_places(op, windows);
  Pooling<D>::max(windows, x, y, argmax);
}

template <typename T, typename D>
void max_backward(std::string_view op, const PoolWindows& windows, const Tensor<T, D>& dy, const PoolArgmax<D>& argmax,
                  Tensor<T, D>& dx, bool accumulate) {
  require_shape(op, "argmax", argmax, dy.shape());
  Pooling<D>::max_backward(windows, dy, argmax, dx, accumulate);
}

}  // namespace pooling

template <typename T, typename D>
void max_pool2d(const Tensor<T, D>& x, const Pool2dOptions& options, Tensor<T, D>& y, PoolArgmax<D>& argmax) {
  constexpr auto op = "max_pool2d";
  pooling::max(op, sliding_windows(op, x.shape(), y.shape(), options), x, y, argmax);
}

template <typename T, typename D>
void max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, const Pool2dOptions& options, Tensor<T, D>& dx,
                         bool accumulate) {
  constexpr auto op = "max_pool2d_backward";
  pooling::max_backward(op, sliding_windows(op, dx.shape(), dy.shape(), options), dy, argmax, dx, accumulate);
}

template <typename T, typename D>
void avg_pool2d(const Tensor<T, D>& x, const AvgPool2dOptions& options, Tensor<T, D>& y) {
  Pooling<D>::average(sliding_windows("avg_pool2d", x.shape(), y.shape(), options), x, y);
}

template <typename T, typename D>
void avg_pool2d_backward(const Tensor<T, D>& dy, const AvgPool2dOptions& options, Tensor<T, D>& dx, bool accumulate) {
  const auto windows = sliding_windows("avg_pool2d_backward", dx.shape(), dy.shape(), options);
  Pooling<D>::average_backward(windows, dy, dx, accumulate);
}

template <typename T, typename D>
void adaptive_max_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y, PoolArgmax<D>& argmax) {
  constexpr auto op = "adaptive_max_pool2d";
  pooling::max(op, adaptive_windows(op, x.shape(), y.shape()), x, y, argmax);
}

template <typename T, typename D>
void adaptive_max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, Tensor<T, D>& dx, bool accumulate) {
  constexpr auto op = "adaptive_max_pool2d_backward";
  pooling::max_backward(op, adaptive_windows(op, dx.shape(), dy.shape()), dy, argmax, dx, accumulate);
}

template <typename T, typename D>
void adaptive_avg_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y) {
  Pooling<D>::average(adaptive_windows("adaptive_avg_pool2d", x.shape(), y.shape()), x, y);
}

template <typename T, typename D>
void adaptive_avg_pool2d_backward(const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  const auto windows = adaptive_windows("adaptive_avg_pool2d_backward", dx.shape(), dy.shape());
  Pooling<D>::average_backward(windows, dy, dx, accumulate);
}

}  // namespace trireme::ops
