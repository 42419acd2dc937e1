#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/models/gpt.hpp"
#include "trireme/nn/divide_layers.hpp"
#include "trireme/ops/embedding/positions.hpp"

namespace trireme::models {
namespace detail {

// The blocks of each stage; one that has none has the embedding or the output layer.
inline std::vector<Range> blocks_by_stage(const GptOptions& options, const ModelContext& context) {
  const auto layers = static_cast<std::size_t>(options.layers) + 2;
  std::vector<double> costs = context.layer_costs;
  if (costs.empty()) {
    costs.assign(layers, 1);
    costs.front() = costs.back() = 0;
  }
  require(costs.size() == layers, "a GPT of {} blocks has {} layers with the embedding and the output layer, got {} costs",
          options.layers, layers, costs.size());
  std::vector<Range> stages = nn::divide_layers(costs, context.num_stages());
  for (Range& stage : stages) {
    stage = {std::max<std::int64_t>(stage.begin - 1, 0), std::min<std::int64_t>(stage.end - 1, options.layers)};
  }
  return stages;
}

inline GptOptions checked(const GptOptions& options, const ModelContext& context) {
  require(options.layers > 0 && options.block > 0 && options.vocabulary > 1,
          "a GPT needs layers and block above 0 and a vocabulary above 1, got {}, {} and {}", options.layers, options.block,
          options.vocabulary);
  require(options.heads > 0 && options.width > 0 && options.width % options.heads == 0,
          "a GPT's heads must divide its width, got {} heads and width {}", options.heads, options.width);
  const int most = options.layers + (context.layer_costs.empty() ? 0 : 2);
  require(context.num_stages() <= most, "a GPT of {} layers has at most {} stages, not {}", options.layers, most,
          context.num_stages());
  return options;
}

template <typename T, typename D>
void copy(const Tensor<T, D>& from, const Tensor<T, D>& to) {
  device::copy_bytes(D{}, to.data(), D{}, from.data(), from.span().size_bytes());
}

// Of all tokens [batch, time], or of this rank's rows where an axis divides them.
template <typename D>
Tensor<std::int32_t, D> positions_of(const Tensor<std::int32_t, D>& tokens, const Collectives* axis) {
  const Range rows = axis == nullptr ? Range{0, tokens.numel()} : even_part(tokens.numel(), *axis);
  Tensor<std::int32_t, D> positions({rows.count()});
  ops::positions(rows.begin, tokens.dim(1), positions);
  return positions;
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

}  // namespace detail

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options, const std::vector<Range>& blocks)
    : nn::Module<P, D>(parent, "transformer"), drop(*this, "drop", options.dropout) {
  const ModelContext& context = this->context();
  const Initializer initializer = Initializer::normal(0, 0.02);
  const bool first = context.has_stage(0);
  const bool last = context.has_stage(context.num_stages() - 1);
  if (first || last) {
    wte.emplace(
        *this, "wte",
        nn::EmbeddingOptions{.rows = options.vocabulary, .width = options.width, .initializer = initializer, .split = true});
    if (first != last) wte->weight.tie(context.ends);
  }
  if (first) {
    wpe.emplace(*this, "wpe", nn::EmbeddingOptions{.rows = options.block, .width = options.width, .initializer = initializer});
  }
  const nn::TransformerOptions block{.heads = options.heads,
                                     .width = options.width,
                                     .dropout = options.dropout,
                                     .weight_deviation = 0.02,
                                     .projection_deviation = 0.02 / std::sqrt(2.0 * options.layers),
                                     .fp8 = options.fp8};
  h.resize(static_cast<std::size_t>(options.layers));
  for (const int stage : context.stages()) {
    const auto [begin, end] = blocks[static_cast<std::size_t>(stage)];
    for (std::int64_t layer = begin; layer < end; ++layer) {
      h[static_cast<std::size_t>(layer)] =
          std::make_unique<nn::TransformerBlock<P, D>>(*this, fmt::format("h.{}", layer), block);
    }
  }
  if (last) ln_f.emplace(*this, "ln_f", nn::LayerNormOptions{.width = options.width});
}

template <typename P, typename D>
Gpt<P, D>::Gpt(const GptOptions& options, const ModelContext& context)
    : nn::Module<P, D>(context),
      options_(detail::checked(options, context)),
      blocks_(detail::blocks_by_stage(options_, context)),
      transformer_(*this, options_, blocks_) {}

template <typename P, typename D>
Shape Gpt<P, D>::stage_shape(std::int64_t batch, std::int64_t time) const {
  if (this->sequence_parallel()) return {batch * time / this->tensor_axis()->size(), options_.width};
  return {batch, time, options_.width};
}

// The residual stream before the first block.
template <typename P, typename D>
Variable<typename P::Master, D> Gpt<P, D>::embedded(const Tensor<std::int32_t, D>& tokens) const {
  const Transformer& t = transformer_;
  require(tokens.shape().size() == 2 && tokens.dim(1) <= options_.block,
          "a GPT of {} positions reads tokens [batch, time], no longer than that, got {}", options_.block, tokens.shape());
  const auto sum = [&] {
    const Collectives* axis = this->tensor_axis();
    if (axis == nullptr) return token_embedding(tokens, t.wte->weight.master(), t.wpe->weight.master());
    const Variable<M, D> of_tokens = t.wte->forward(tokens);
    return add(of_tokens, reshape(t.wpe->forward(detail::positions_of(tokens, this->sequence_parallel() ? axis : nullptr)),
                                  of_tokens.shape()));
  };
  return t.drop.forward(sum(), tokens.dim(1));
}

// That of block `layer`, or after all of them the one before the output layer.
template <typename P, typename D>
const nn::LayerNorm<P, D>& Gpt<P, D>::norm_before(std::int64_t layer) const {
  return layer < options_.layers ? transformer_.h[static_cast<std::size_t>(layer)]->ln_1 : *transformer_.ln_f;
}

template <typename P, typename D>
Variable<typename P::Master, D> Gpt<P, D>::stage(int stage, const Variable<M, D>& x,
                                                 const Tensor<std::int32_t, D>& tokens) const {
  require(this->context().has_stage(stage) && stage + 1 < this->context().num_stages(),
          "stage {} of {} does not lie here, or is the last one", stage, this->context().num_stages());
  const auto [begin, end] = blocks_[static_cast<std::size_t>(stage)];
  const std::int64_t time = tokens.dim(1);
  Variable<M, D> stream = stage == 0 ? embedded(tokens) : x;
  if (begin == end) return stream;
  Variable<T, D> normalized = norm_before(begin).forward(stream);
  for (std::int64_t layer = begin; layer + 1 < end; ++layer) {
    std::tie(stream, normalized) =
        transformer_.h[static_cast<std::size_t>(layer)]->forward(stream, normalized, norm_before(layer + 1), time);
  }
  return transformer_.h[static_cast<std::size_t>(end - 1)]->forward(stream, normalized, time);
}

// The last stage up to what the output layer reads.
template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::final_states(const Variable<M, D>& x, std::int64_t time) const {
  const auto [begin, end] = blocks_.back();
  Variable<M, D> stream = x;
  Variable<T, D> normalized = norm_before(begin).forward(stream);
  for (std::int64_t layer = begin; layer < end; ++layer) {
    std::tie(stream, normalized) =
        transformer_.h[static_cast<std::size_t>(layer)]->forward(stream, normalized, norm_before(layer + 1), time);
  }
  return normalized;
}

// Of the last stage, on the rank that has it; the stages before it run one after the other.
template <typename P, typename D>
std::optional<Variable<typename P::Master, D>> Gpt<P, D>::last_input(const Tensor<std::int32_t, D>& tokens) const {
  constexpr const char* name = "input of a stage";
  const Collectives* ranks = this->context().pipeline.get();
  require(ranks == nullptr || Tape::current() == nullptr,
          "a rank has one or some of the {} stages of this GPT: parallel::Pipeline trains them", this->context().num_stages());
  Variable<M, D> x;
  for (const int stage : this->context().stages()) {
    if (ranks != nullptr && stage > 0) {
      Tensor<M, D> input(stage_shape(tokens.dim(0), tokens.dim(1)));
      ranks->receive(input.span(), (stage - 1) % ranks->size(), 0, name).wait_on_host();
      x = Variable<M, D>(input);
    }
    if (stage + 1 == this->context().num_stages()) return stage == 0 ? embedded(tokens) : x;
    x = this->stage(stage, x, tokens);
    if (ranks != nullptr) {
      const Tensor<M, D> output = x.value();
      ranks->send(std::span<const M>(output.span()), (stage + 1) % ranks->size(), 0, name);
    }
  }
  return std::nullopt;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::project(const Variable<T, D>& states, std::int64_t time) const {
  const auto weight = transformer_.wte->weight.variable();
  const Collectives* axis = this->tensor_axis();
  if (axis == nullptr) return linear(states, weight);
  const Variable<T, D> logits = column_parallel_linear(states, weight, {}, *axis, this->sequence_parallel());
  return this->sequence_parallel() ? reshape(logits, {logits.shape()[0] / time, time, logits.shape().back()}) : logits;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::logits(const Tensor<std::int32_t, D>& tokens) const {
  require(this->context().pipeline == nullptr, "a rank has one or some of the {} stages of this GPT, so not all of its logits",
          this->context().num_stages());
  return project(final_states(*last_input(tokens), tokens.dim(1)), tokens.dim(1));
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss_of(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets) const {
  const Collectives* axis = this->tensor_axis();
  if (axis == nullptr) return cross_entropy(logits, targets);
  return vocab_parallel_cross_entropy(logits, targets, transformer_.wte->held_rows().begin, options_.vocabulary, *axis);
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss(const Tensor<std::int32_t, D>& tokens,
                                            const Tensor<std::int32_t, D>& targets) const {
  const Collectives* ranks = this->context().pipeline.get();
  const std::optional<Variable<M, D>> x = last_input(tokens);
  if (ranks == nullptr) return last_stage(*x, targets);
  std::array<double, 2> result{};  // sum, target_weight
  if (x) {
    const Loss<M, D> loss = last_stage(*x, targets);
    result = {static_cast<double>(loss.sum.value().item()), loss.target_weight.item()};
  }
  ranks->broadcast(std::span<double>(result), ranks->size() - 1, "loss").wait_on_host();
  return {.sum = Variable<M, D>(Tensor<M, D>::full({}, static_cast<M>(result[0]))),
          .target_weight = result[1],
          .nominal_targets = targets.numel()};
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::last_stage(const Variable<M, D>& x, const Tensor<std::int32_t, D>& targets) const {
  require(this->context().has_stage(this->context().num_stages() - 1), "the last of {} stages does not lie here",
          this->context().num_stages());
  return loss_of(project(final_states(x, targets.dim(1)), targets.dim(1)), targets);
}

// x: of the last stage, tokens [batch, time] that may have been padded with sequences -> [batch, vocabulary].
template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::last_logits(const Variable<M, D>& x, std::int64_t batch, std::int64_t time) const {
  const Collectives* axis = this->tensor_axis();
  Tensor<T, D> states = final_states(x, time).value();
  if (this->sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  states = states.reshape({states.shape().rows(), options_.width});
  Tensor<T, D> last({batch, options_.width});
  for (std::int64_t row = 0; row < batch; ++row) detail::copy(states.narrow((row + 1) * time - 1, 1), last.narrow(row, 1));
  const Tensor<T, D> logits = linear(Variable<T, D>(last), transformer_.wte->weight.variable()).value();
  if (axis == nullptr) return logits;
  const Range held = transformer_.wte->held_rows();
  auto all = Tensor<T, D>::full({batch, options_.vocabulary}, T(0.0f));
  const Tensor<T, D> places = all.reshape({all.numel()});
  for (std::int64_t row = 0; row < batch; ++row) {
    detail::copy(logits.narrow(row, 1), places.narrow(row * options_.vocabulary + held.begin, held.count()));
  }
  axis->all_reduce(all.span(), ReduceOp::sum, "logits of the next token").wait_on_stream();
  return all;
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const Collectives* ranks = this->context().pipeline.get();
  const std::optional<Variable<M, D>> x =
      last_input(this->sequence_parallel() ? detail::divisible(tokens, options_.width, *this->tensor_axis()) : tokens);
  Tensor<T, D> logits = x ? last_logits(*x, tokens.dim(0), tokens.dim(1)) : Tensor<T, D>({tokens.dim(0), options_.vocabulary});
  if (ranks != nullptr) ranks->broadcast(logits.span(), ranks->size() - 1, "logits of the next token").wait_on_host();
  return logits;
}

}  // namespace trireme::models
