#pragma once

#include "ops/loss/ctc_samples.hpp"

// The operations of ops/loss/ctc.hpp for any device: Ctc<D> does the work.
namespace trireme::ops {

// beta[batch, 2, states] and next[batch, labels] are scratch memory for the backward pass.
template <typename D>
struct Ctc {
  template <typename T>
  static void check(const CtcSamples<T>& samples);
  template <typename T>
  static void forward(const CtcSamples<T>& samples, T* losses, double* alpha);
  template <typename T>
  static void backward(const CtcBackward<T>& pass);
};

template <typename T, typename D>
void ctc_loss(const CtcInput<T, D>& input, Tensor<T, D>& losses, Tensor<double, D>& alpha) {
  const auto samples = ctc_samples_of("ctc_loss", input);
  require_shape("ctc_loss", "losses", losses, {samples.batch});
  require_shape("ctc_loss", "alpha", alpha, {samples.batch, samples.time, samples.most_states()});
  Ctc<D>::check(samples);
  Ctc<D>::forward(samples, losses.data(), alpha.data());
}

template <typename T, typename D>
void ctc_loss_backward(const CtcInput<T, D>& input, const Tensor<double, D>& alpha, const Tensor<T, D>& dlosses,
                       Tensor<T, D>& dlog_probabilities) {
  constexpr std::string_view op = "ctc_loss_backward";
  const auto samples = ctc_samples_of(op, input);
  require_shape(op, "alpha", alpha, {samples.batch, samples.time, samples.most_states()});
  require_shape(op, "dlosses", dlosses, {samples.batch});
  require_shape(op, "dlog_probabilities", dlog_probabilities, input.log_probabilities.shape());
  const Tensor<double, D> beta({samples.batch, 2, samples.most_states()});
  const Tensor<std::int32_t, D> next({samples.batch, samples.labels});
  Ctc<D>::backward(CtcBackward<T>{samples, alpha.data(), dlosses.data(), beta.data(), next.data(), dlog_probabilities.data()});
}

}  // namespace trireme::ops
