#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/nn/token_layers.hpp"

// What language models share when they generate text.
namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

template <typename T, typename D>
void copy(const Tensor<T, D>& from, const Tensor<T, D>& to) {
  device::copy_bytes(D{}, to.data(), D{}, from.data(), from.span().size_bytes());
}

// Tokens [batch, time] and as many more sequences as it takes for a sequence-parallel axis to divide their rows.
template <typename D>
Tensor<std::int32_t, D> divisible(const Tensor<std::int32_t, D>& tokens, std::int64_t width, const Collectives& axis) {
  std::int64_t batch = tokens.dim(0);
  while (!divides_rows(batch * tokens.dim(1), width, axis)) ++batch;
  auto padded = Tensor<std::int32_t, D>::zeros({batch, tokens.dim(1)});
  copy(tokens, padded.narrow(0, tokens.dim(0)));
  return padded;
}

// Of the last position of states, tokens [batch, time] that may have been padded with sequences -> [batch, vocabulary].
template <typename P, typename D>
Tensor<typename P::Compute, D> last_logits(const nn::TokenLogits<P, D>& head, Tensor<typename P::Compute, D> states,
                                           std::int64_t batch, std::int64_t time) {
  using T = typename P::Compute;
  const Collectives* axis = head.tensor_axis();
  if (head.sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  states = states.reshape({states.shape().rows(), head.width()});
  Tensor<T, D> last({batch, head.width()});
  for (std::int64_t row = 0; row < batch; ++row) copy(states.narrow((row + 1) * time - 1, 1), last.narrow(row, 1));
  const Tensor<T, D> logits = linear(Variable<T, D>(last), head.weight.variable()).value();
  if (axis == nullptr) return logits;
  const Range held = head.held_rows();
  auto all = Tensor<T, D>::full({batch, head.vocabulary()}, T(0.0f));
  const Tensor<T, D> places = all.reshape({all.numel()});
  for (std::int64_t row = 0; row < batch; ++row) {
    copy(logits.narrow(row, 1), places.narrow(row * head.vocabulary() + held.begin, held.count()));
  }
  axis->all_reduce(all.span(), ReduceOp::sum, "logits of the next token").wait_on_stream();
  return all;
}

// Logits of the position after the last of tokens [batch, time]: [batch, vocabulary]. The model's last layer is the norm and
// the head. All ranks of a divided model call it and get the same.
template <typename Staged, typename Norm, typename P, typename D>
Tensor<typename P::Compute, D> next_token_logits(const Staged& model, const Norm& norm, const nn::TokenLogits<P, D>& head,
                                                 const Tensor<std::int32_t, D>& tokens) {
  using T = typename P::Compute;
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const auto read = model.sequence_parallel() ? divisible(tokens, head.width(), *model.tensor_axis()) : tokens;
  const auto x = model.before_last_layer({.tokens = read, .targets = {}});
  Tensor<T, D> logits = x ? last_logits(head, norm.forward(*x).value(), tokens.dim(0), tokens.dim(1))
                          : Tensor<T, D>({tokens.dim(0), head.vocabulary()});
  const Collectives* ranks = model.context().pipeline.get();
  if (ranks != nullptr) {
    ranks->broadcast(logits.span(), model.rank_of_last_stage(), "logits of the next token").wait_on_host();
  }
  return logits;
}

}  // namespace detail
}  // namespace models
}  // namespace trireme
