#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"
#include "trireme/nn/layers/token_layers.hpp"

// Parts that language models share for generating text.
namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

template <typename T, typename D>
void copy(const Tensor<T, D>& from, const Tensor<T, D>& to) {
  device::copy_bytes(D{}, to.data(), D{}, from.data(), from.span().size_bytes());
}

// Pads tokens [batch, time] with further sequences until a sequence-parallel axis can divide their rows.
template <typename D>
Tensor<std::int32_t, D> divisible(const Tensor<std::int32_t, D>& tokens, std::int64_t width, const Collectives& axis) {
  std::int64_t batch = tokens.dim(0);
  while (!divides_rows(batch * tokens.dim(1), width, axis)) ++batch;
  auto padded = Tensor<std::int32_t, D>::zeros({batch, tokens.dim(1)});
  copy(tokens, padded.narrow(0, tokens.dim(0)));
  return padded;
}

// Returns the logits of `rows` of `states`: [rows, vocabulary].
template <typename P, typename D>
Tensor<typename P::Compute, D> logits_of_rows(const nn::TokenLogits<P, D>& head, Tensor<typename P::Compute, D> states,
                                              const std::vector<std::int64_t>& rows) {
  using T = typename P::Compute;
  const Collectives* axis = head.tensor_axis();
  if (head.sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  states = states.reshape({states.shape().rows(), head.width()});
  const auto batch = static_cast<std::int64_t>(rows.size());
  Tensor<T, D> chosen({batch, head.width()});
  for (std::int64_t row = 0; row < batch; ++row) {
    copy(states.narrow(rows[static_cast<std::size_t>(row)], 1), chosen.narrow(row, 1));
  }
  const Tensor<T, D> logits = linear(Variable<T, D>(chosen), head.weight.variable()).value();
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

// Returns the logits [rows, vocabulary] of `rows` of x, the input of the model's last layer (norm and head). x is set only on
// the ranks that hold the last layer; all ranks of a divided model get the same logits.
template <typename Staged, typename Norm, typename P, typename D>
Tensor<typename P::Compute, D> logits_on_all(const Staged& model, const Norm& norm, const nn::TokenLogits<P, D>& head,
                                             const std::optional<nn::Residual<P, D>>& x,
                                             const std::vector<std::int64_t>& rows) {
  using T = typename P::Compute;
  Tensor<T, D> logits = x ? logits_of_rows(head, norm.forward(*x).value(), rows)
                          : Tensor<T, D>({static_cast<std::int64_t>(rows.size()), head.vocabulary()});
  const Collectives* ranks = model.context().pipeline.get();
  if (ranks != nullptr) {
    ranks->broadcast(logits.span(), model.rank_of_last_stage(), "logits of the next token").wait_on_host();
  }
  if (const Collectives* experts = model.context().expert.get()) {
    experts->broadcast(logits.span(), 0, "logits of the next token").wait_on_host();
  }
  return logits;
}

// Takes tokens [batch, time] and returns the logits of the position after the last token: [batch, vocabulary]. All ranks of a
// divided model call next_token_logits().
template <typename Staged, typename Norm, typename P, typename D>
Tensor<typename P::Compute, D> next_token_logits(const Staged& model, const Norm& norm, const nn::TokenLogits<P, D>& head,
                                                 const Tensor<std::int32_t, D>& tokens) {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const auto read = model.sequence_parallel() ? divisible(tokens, head.width(), *model.tensor_axis()) : tokens;
  std::vector<std::int64_t> last;
  for (std::int64_t row = 0; row < tokens.dim(0); ++row) last.push_back((row + 1) * tokens.dim(1) - 1);
  return logits_on_all(model, norm, head, model.before_last_layer({.tokens = read, .targets = {}}), last);
}

// New tokens of all parts, one after the other; in a sequence-parallel model they are padded until the ranks can divide them.
template <typename D>
struct ReadTokens {
  Tensor<std::int32_t, D> tokens;     // [1, rows]
  Tensor<std::int32_t, D> positions;  // of this rank's rows
};

template <typename Staged, typename D>
ReadTokens<D> joined(const Staged& model, std::int64_t width, std::span<const nn::NewTokens> parts,
                     std::span<const ops::CachedRows> rows) {
  std::vector<std::int32_t> tokens, positions;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    tokens.insert(tokens.end(), parts[part].tokens.begin(), parts[part].tokens.end());
    for (std::int64_t i = 0; i < rows[part].count; ++i) positions.push_back(static_cast<std::int32_t>(rows[part].first + i));
  }
  std::span<const std::int32_t> own(positions);
  if (model.sequence_parallel()) {
    while (!divides_rows(std::ssize(tokens), width, *model.tensor_axis())) tokens.push_back(0), positions.push_back(0);
    const Range held = even_part(std::ssize(positions), *model.tensor_axis());
    own = std::span<const std::int32_t>(positions).subspan(static_cast<std::size_t>(held.begin),
                                                           static_cast<std::size_t>(held.count()));
  }
  return {.tokens = Tensor<std::int32_t, D>::from({1, std::ssize(tokens)}, tokens),
          .positions = Tensor<std::int32_t, D>::from({std::ssize(own)}, own)};
}

// Logits after the last token of each part: [parts, vocabulary]. embed(tokens) is the model's first layer; the blocks follow.
template <typename Staged, typename Embed, typename Blocks, typename Norm, typename P, typename D>
Tensor<typename P::Compute, D> next_token_logits(const Staged& model, const Embed& embed, const Blocks& blocks,
                                                 const Norm& norm, const nn::TokenLogits<P, D>& head,
                                                 std::span<const nn::NewTokens> parts,
                                                 nn::KeyValueCache<typename P::Compute, D>& cache) {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const std::int64_t longest = model.options().block;
  require(cache.capacity() <= longest, "a cache of {} tokens for each sequence is too long for a model of {} positions",
          cache.capacity(), longest);
  const std::vector<ops::CachedRows> rows = cache.rows_of(parts);
  const auto read = joined<Staged, D>(model, head.width(), parts, rows);
  const auto run = [&](const Range& layers, nn::Residual<P, D> x) {
    for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
      const auto block = static_cast<std::size_t>(layer - 1);
      x = layer == 0 ? embed(read) : blocks[block].forward(x, nn::LayerCache<typename P::Compute, D>{&cache, block, rows});
    }
    return x;
  };
  std::vector<std::int64_t> last;
  for (std::int64_t end = 0; const ops::CachedRows& part : rows) last.push_back((end += part.count) - 1);
  const auto logits = logits_on_all(model, norm, head, model.before_last_layer_by(run), last);
  cache.add(rows);
  return logits;
}

}  // namespace detail
}  // namespace models
}  // namespace trireme
