#pragma once

#include <string_view>

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/transpose.hpp"
#include "trireme/ops/reduce/softmax.hpp"

// The operations of ops/reduce/softmax.hpp for any device: Softmax<D> does the work.
namespace trireme::ops {

enum class SoftmaxKind : std::uint8_t { softmax, log_softmax };

// For rows of `width` elements.
template <typename D>
struct Softmax {
  template <typename T>
  static void forward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* x, T* y);
  template <typename T>
  static void backward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* y, const T* dy, T* dx,
                       bool accumulate);
};

namespace softmax_checks {

inline void require_row(std::string_view op, const Shape& shape) {
  require(shape.size() > 0, "{}: x is a scalar, but needs a last dim", op);
}

template <typename T, typename D>
void forward(std::string_view op, SoftmaxKind kind, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_row(op, x.shape());
  require_shape(op, "y", y, x.shape());
  if (x.numel() == 0) return;
  Softmax<D>::forward(kind, x.shape().rows(), x.shape().back(), x.data(), y.data());
}

template <typename T, typename D>
void backward(std::string_view op, SoftmaxKind kind, const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx,
              bool accumulate) {
  require_row(op, y.shape());
  require_shape(op, "dy", dy, y.shape());
  require_shape(op, "dx", dx, y.shape());
  if (y.numel() == 0) return;
  Softmax<D>::backward(kind, y.shape().rows(), y.shape().back(), y.data(), dy.data(), dx.data(), accumulate);
}

}  // namespace softmax_checks

template <typename T, typename D>
void softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  softmax_checks::forward("softmax", SoftmaxKind::softmax, x, y);
}

template <typename T, typename D>
void softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  softmax_checks::backward("softmax_backward", SoftmaxKind::softmax, y, dy, dx, accumulate);
}

template <typename T, typename D>
void log_softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  softmax_checks::forward("log_softmax", SoftmaxKind::log_softmax, x, y);
}

template <typename T, typename D>
void log_softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  softmax_checks::backward("log_softmax_backward", SoftmaxKind::log_softmax, y, dy, dx, accumulate);
}

namespace softmax_checks {

// Applies function(x, y), which works over the last dim, to dim `dim`.
template <typename T, typename D>
Tensor<T, D> over_dim(std::string_view op, const Tensor<T, D>& x, int dim, const auto& function) {
  require_defined(op, "x", x);
  const auto of_rows = [&](const Tensor<T, D>& rows) {
    Tensor<T, D> y(rows.shape());
    function(rows, y);
    return y;
  };
  if (dim == -1 || dim == x.shape().size() - 1) return of_rows(x);
  const auto exchanged = [&](const Tensor<T, D>& from) {
    Tensor<T, D> to(transposed_shape(from.shape(), dim, -1));
    transpose(from, dim, -1, to);
    return to;
  };
  return exchanged(of_rows(exchanged(x)));
}

}  // namespace softmax_checks
}  // namespace trireme::ops

namespace trireme {

template <typename T, typename D>
Tensor<T, D> softmax(const Tensor<T, D>& x, int dim) {
  return ops::softmax_checks::over_dim("softmax", x, dim, [](const auto& rows, auto& y) { ops::softmax(rows, y); });
}

template <typename T, typename D>
Tensor<T, D> log_softmax(const Tensor<T, D>& x, int dim) {
  return ops::softmax_checks::over_dim("log_softmax", x, dim, [](const auto& rows, auto& y) { ops::log_softmax(rows, y); });
}

}  // namespace trireme
