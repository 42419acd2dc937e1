#pragma once

#include <algorithm>

#include "ops/base/check.hpp"
#include "ops/loss/ctc_body.hpp"
#include "trireme/ops/loss/ctc.hpp"

// The operations of ops/ctc.hpp for any device: Ctc<D> does the work.
namespace trireme::ops {

// beta[batch, 2, states] and next[batch, labels] are memory for the backward pass.
template <typename D>
struct Ctc {
  template <typename T>
  static void check(const CtcSamples<T>& samples);
  template <typename T>
  static void forward(const CtcSamples<T>& samples, T* losses, T* alpha);
  template <typename T>
  static void backward(const CtcBackward<T>& pass);
};

template <typename T, typename D>
CtcSamples<T> ctc_samples_of(std::string_view op, const CtcInput<T, D>& input) {
  require_defined(op, "log_probabilities", input.log_probabilities);
  require_defined(op, "targets", input.targets);
  const Shape& shape = input.log_probabilities.shape();
  require(shape.size() == 3, "{}: log_probabilities has shape {}, but needs [batch, time, classes]", op, shape);
  require(input.targets.shape().size() == 2 && input.targets.dim(0) == shape[0],
          "{}: targets has shape {}, but needs [{}, labels]", op, input.targets.shape(), shape[0]);
  require_shape(op, "input_lengths", input.input_lengths, {shape[0]});
  require_shape(op, "target_lengths", input.target_lengths, {shape[0]});
  require(input.options.blank >= 0 && input.options.blank < shape[2], "{}: the blank is {}, but must lie in [0, {})", op,
          input.options.blank, shape[2]);
  return {.log_probabilities = input.log_probabilities.data(),
          .targets = input.targets.data(),
          .input_lengths = input.input_lengths.data(),
          .target_lengths = input.target_lengths.data(),
          .batch = shape[0],
          .time = shape[1],
          .classes = shape[2],
          .labels = input.targets.dim(1),
          .blank = input.options.blank,
          .zero_infinity = input.options.zero_infinity,
          .per_label = input.options.per_label};
}

template <typename T, typename D>
void ctc_loss(const CtcInput<T, D>& input, Tensor<T, D>& losses, Tensor<T, D>& alpha) {
  const auto samples = ctc_samples_of("ctc_loss", input);
  require_shape("ctc_loss", "losses", losses, {samples.batch});
  require_shape("ctc_loss", "alpha", alpha, {samples.batch, samples.time, samples.most_states()});
  Ctc<D>::check(samples);
  Ctc<D>::forward(samples, losses.data(), alpha.data());
}

template <typename T, typename D>
void ctc_loss_backward(const CtcInput<T, D>& input, const Tensor<T, D>& alpha, const Tensor<T, D>& dlosses,
                       Tensor<T, D>& dlog_probabilities) {
  constexpr std::string_view op = "ctc_loss_backward";
  const auto samples = ctc_samples_of(op, input);
  require_shape(op, "alpha", alpha, {samples.batch, samples.time, samples.most_states()});
  require_shape(op, "dlosses", dlosses, {samples.batch});
  require_shape(op, "dlog_probabilities", dlog_probabilities, input.log_probabilities.shape());
  const Tensor<T, D> beta({samples.batch, 2, samples.most_states()});
  const Tensor<std::int32_t, D> next({samples.batch, samples.labels});
  Ctc<D>::backward(CtcBackward<T>{samples, alpha.data(), dlosses.data(), beta.data(), next.data(), dlog_probabilities.data()});
}

#define TRIREME_INSTANTIATE_CTC(T, D)                                          \
  template void ctc_loss(const CtcInput<T, D>&, Tensor<T, D>&, Tensor<T, D>&); \
  template void ctc_loss_backward(const CtcInput<T, D>&, const Tensor<T, D>&, const Tensor<T, D>&, Tensor<T, D>&)

}  // namespace trireme::ops
