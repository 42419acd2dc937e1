#pragma once

#include "ops/base/check.hpp"
#include "ops/norm/batch_norm_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/norm/batch_norm.hpp"

// The operations of ops/norm/batch_norm.hpp for any device: BatchNorm<D> does the work.
namespace trireme::ops {

// The arguments of batch_norm_backward besides its pass.
template <typename T, typename D>
struct BatchNormInputGradient {
  Tensor<double, D> sums;
  double rows;
  Tensor<T, D> dx;
  bool accumulate_dx;
};

template <typename D>
struct BatchNorm {
  template <typename T>
  static void sums(const Tensor<T, D>& x, Tensor<double, D>& sums);
  template <typename A>
  static void statistics(const BatchNormStatistics<A, D>& pass);
  template <typename A>
  static void running_statistics(const Tensor<A, D>& running_mean, const Tensor<A, D>& running_var, double epsilon,
                                 Tensor<double, D>& mean, Tensor<double, D>& rstd);
  template <typename T>
  static void forward(const BatchNormForward<T, D>& pass);
  template <typename T>
  static void backward_sums(const BatchNormBackward<T, D>& pass, Tensor<double, D>& sums, const Tensor<T, D>& dresidual);
  template <typename A>
  static void weight_gradient(const Tensor<double, D>& sums, Tensor<A, D>& gradient, bool accumulate);
  template <typename T>
  static void backward(const BatchNormBackward<T, D>& pass, const BatchNormInputGradient<T, D>& gradient);
};

template <typename A, typename D>
BatchStatistics<A> batch_statistics(const BatchNormStatistics<A, D>& pass) {
  return {.sums = pass.sums.data(),
          .channels = pass.mean.numel(),
          .rows = pass.rows,
          .epsilon = pass.epsilon,
          .momentum = pass.momentum,
          .running_mean = pass.running_mean.data(),
          .running_var = pass.running_var.data(),
          .mean = pass.mean.data(),
          .rstd = pass.rstd.data()};
}

namespace batch_norm_checks {

inline void require_channels(std::string_view op, const Shape& x) {
  require(x.size() > 0 && x.back() > 0, "{}: x has shape {}; the last dim, the channels, must not be empty", op, x);
}

inline void require_sums(std::string_view op, const Shape& sums, std::int64_t channels) {
  require(sums.numel() == 2 * channels, "{}: there are {} sums, but {} channels need two each", op, sums.numel(), channels);
}

// The checks that forward and backward pass share.
template <typename Pass>
void require_pass(std::string_view op, const Pass& pass) {
  require_channels(op, pass.x.shape());
  const std::int64_t channels = pass.x.shape().back();
  require_count(op, "mean", pass.mean, channels);
  require_count(op, "rstd", pass.rstd, channels);
  if (pass.weight.defined()) require_count(op, "weight", pass.weight, channels);
  if (pass.bias.defined()) require_count(op, "bias", pass.bias, channels);
  if (pass.y.defined()) require_shape(op, "y", pass.y, pass.x.shape());
}

}  // namespace batch_norm_checks

template <typename T, typename D>
void batch_norm_sums(const Tensor<T, D>& x, Tensor<double, D>& sums) {
  batch_norm_checks::require_channels("batch_norm_sums", x.shape());
  batch_norm_checks::require_sums("batch_norm_sums", sums.shape(), x.shape().back());
  BatchNorm<D>::sums(x, sums);
}

template <typename A, typename D>
void batch_norm_statistics(const BatchNormStatistics<A, D>& pass) {
  constexpr std::string_view op = "batch_norm_statistics";
  const std::int64_t channels = pass.mean.numel();
  require(pass.rows > 1, "{}: a variance needs more than one row, there are {}", op, pass.rows);
  batch_norm_checks::require_sums(op, pass.sums.shape(), channels);
  require_count(op, "rstd", pass.rstd, channels);
  if (pass.running_mean.defined()) require_count(op, "running_mean", pass.running_mean, channels);
  if (pass.running_var.defined()) require_count(op, "running_var", pass.running_var, channels);
  BatchNorm<D>::statistics(pass);
}

template <typename A, typename D>
void batch_norm_running_statistics(const Tensor<A, D>& running_mean, const Tensor<A, D>& running_var, double epsilon,
                                   Tensor<double, D>& mean, Tensor<double, D>& rstd) {
  constexpr std::string_view op = "batch_norm_running_statistics";
  const std::int64_t channels = running_mean.numel();
  require_count(op, "running_var", running_var, channels);
  require_count(op, "mean", mean, channels);
  require_count(op, "rstd", rstd, channels);
  BatchNorm<D>::running_statistics(running_mean, running_var, epsilon, mean, rstd);
}

template <typename T, typename D>
void batch_norm(const BatchNormForward<T, D>& pass) {
  batch_norm_checks::require_pass("batch_norm", pass);
  require_shape("batch_norm", "y", pass.y, pass.x.shape());
  if (pass.residual.defined()) require_shape("batch_norm", "residual", pass.residual, pass.x.shape());
  BatchNorm<D>::forward(pass);
}

template <typename T, typename D>
void batch_norm_backward_sums(const BatchNormBackward<T, D>& pass, Tensor<double, D>& sums, const Tensor<T, D>& dresidual) {
  constexpr std::string_view op = "batch_norm_backward_sums";
  batch_norm_checks::require_pass(op, pass);
  require_shape(op, "dy", pass.dy, pass.x.shape());
  batch_norm_checks::require_sums(op, sums.shape(), pass.x.shape().back());
  if (dresidual.defined()) require_shape(op, "dresidual", dresidual, pass.x.shape());
  BatchNorm<D>::backward_sums(pass, sums, dresidual);
}

template <typename A, typename D>
void batch_norm_weight_gradient(const Tensor<double, D>& sums, Tensor<A, D>& gradient, bool accumulate) {
  require_count("batch_norm_weight_gradient", "gradient", gradient, sums.numel());
  BatchNorm<D>::weight_gradient(sums, gradient, accumulate);
}

template <typename T, typename D>
void batch_norm_backward(const BatchNormBackward<T, D>& pass, const Tensor<double, D>& sums, double rows, Tensor<T, D>& dx,
                         bool accumulate_dx) {
  constexpr std::string_view op = "batch_norm_backward";
  batch_norm_checks::require_pass(op, pass);
  require_shape(op, "dy", pass.dy, pass.x.shape());
  require_shape(op, "dx", dx, pass.x.shape());
  if (sums.defined()) batch_norm_checks::require_sums(op, sums.shape(), pass.x.shape().back());
  BatchNorm<D>::backward(pass, {.sums = sums, .rows = rows, .dx = dx, .accumulate_dx = accumulate_dx});
}

}  // namespace trireme::ops
