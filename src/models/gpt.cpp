#include "trireme/models/gpt.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::models {
namespace {

// The blocks of a stage: as even as can be, the first stages have one more.
struct Blocks {
  Blocks(int layers, int stage, int num_stages)
      : begin(begin_of(layers, stage, num_stages)), end(begin_of(layers, stage + 1, num_stages)) {}
  static std::size_t begin_of(int layers, int stage, int num_stages) {
    return static_cast<std::size_t>(stage * (layers / num_stages) + std::min(stage, layers % num_stages));
  }
  std::size_t begin;
  std::size_t end;
};

GptOptions checked(const GptOptions& options, const nn::ModelPart& part) {
  require(options.layers > 0 && options.block > 0 && options.vocabulary > 1,
          "a GPT needs layers and block above 0 and a vocabulary above 1, got {}, {} and {}", options.layers, options.block,
          options.vocabulary);
  require(options.heads > 0 && options.width > 0 && options.width % options.heads == 0,
          "a GPT's heads must divide its width, got {} heads and width {}", options.heads, options.width);
  require(part.num_stages <= options.layers, "a GPT of {} layers has at most as many stages, not {}", options.layers,
          part.num_stages);
  return options;
}

// Of all tokens [batch, time], or of this rank's rows where an axis divides them.
template <typename D>
Tensor<std::int32_t, D> positions_of(const Tensor<std::int32_t, D>& tokens, const TensorAxis* axis) {
  const Range rows = axis == nullptr ? Range{0, tokens.numel()} : axis->part(tokens.numel());
  Tensor<std::int32_t, D> positions({rows.count()});
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    positions.data()[row - rows.begin] = static_cast<std::int32_t>(row % tokens.dim(1));
  }
  return positions;
}

// Tokens [batch, time] and as many more sequences as it takes for a sequence-parallel axis to divide their rows.
template <typename D>
Tensor<std::int32_t, D> divisible(const Tensor<std::int32_t, D>& tokens, std::int64_t width, const TensorAxis& axis) {
  std::int64_t batch = tokens.dim(0);
  while (!axis.divides_rows(batch * tokens.dim(1), width)) ++batch;
  auto padded = Tensor<std::int32_t, D>::zeros({batch, tokens.dim(1)});
  std::copy_n(tokens.data(), tokens.numel(), padded.data());
  return padded;
}

}  // namespace

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options, const nn::ModelPart& part)
    : nn::Module<P, D>(parent, "transformer"), drop(*this, "drop", options.dropout) {
  const Initializer initializer = Initializer::normal(0, 0.02);
  const bool first = part.has_stage(0);
  const bool last = part.has_stage(part.num_stages - 1);
  if (first || last) {
    wte.emplace(
        *this, "wte",
        nn::EmbeddingOptions{.rows = options.vocabulary, .width = options.width, .initializer = initializer, .split = true});
    if (first != last) wte->weight.tie(part.ends);
  }
  if (first) {
    wpe.emplace(*this, "wpe", nn::EmbeddingOptions{.rows = options.block, .width = options.width, .initializer = initializer});
  }
  const nn::TransformerOptions block{.heads = options.heads,
                                     .width = options.width,
                                     .dropout = options.dropout,
                                     .weight_deviation = 0.02,
                                     .projection_deviation = 0.02 / std::sqrt(2.0 * options.layers)};
  h.resize(static_cast<std::size_t>(options.layers));
  for (const int stage : part.stages) {
    const Blocks blocks(options.layers, stage, part.num_stages);
    for (std::size_t layer = blocks.begin; layer < blocks.end; ++layer) {
      h[layer] = std::make_unique<nn::TransformerBlock<P, D>>(*this, fmt::format("h.{}", layer), block);
    }
  }
  if (last) ln_f.emplace(*this, "ln_f", nn::LayerNormOptions{.width = options.width});
}

template <typename P, typename D>
Gpt<P, D>::Gpt(const GptOptions& options, const nn::ModelPart& part)
    : nn::Module<P, D>(part), options_(checked(options, part)), part_(part), transformer_(*this, options_, part_) {}

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
    const TensorAxis* axis = this->tensor_axis();
    if (axis == nullptr) return token_embedding(tokens, t.wte->weight.master(), t.wpe->weight.master());
    const Variable<M, D> of_tokens = t.wte->forward(tokens);
    return add(of_tokens,
               reshape(t.wpe->forward(positions_of(tokens, this->sequence_parallel() ? axis : nullptr)), of_tokens.shape()));
  };
  return t.drop.forward(sum(), tokens.dim(1));
}

template <typename P, typename D>
Variable<typename P::Master, D> Gpt<P, D>::stage(int stage, const Variable<M, D>& x,
                                                 const Tensor<std::int32_t, D>& tokens) const {
  require(part_.has_stage(stage) && stage + 1 < part_.num_stages, "stage {} of {} does not lie here, or is the last one", stage,
          part_.num_stages);
  const Transformer& t = transformer_;
  const Blocks blocks(options_.layers, stage, part_.num_stages);
  const std::int64_t time = tokens.dim(1);
  Variable<M, D> stream = stage == 0 ? embedded(tokens) : x;
  Variable<T, D> normalized = t.h[blocks.begin]->ln_1.forward(stream);
  for (std::size_t layer = blocks.begin; layer + 1 < blocks.end; ++layer) {
    std::tie(stream, normalized) = t.h[layer]->forward(stream, normalized, t.h[layer + 1]->ln_1, time);
  }
  return t.h[blocks.end - 1]->forward(stream, normalized, time);
}

// The last stage up to the norm before the output layer.
template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::normalized_states(const Variable<M, D>& x, std::int64_t time) const {
  const Transformer& t = transformer_;
  const Blocks blocks(options_.layers, part_.num_stages - 1, part_.num_stages);
  Variable<M, D> stream = x;
  Variable<T, D> normalized = t.h[blocks.begin]->ln_1.forward(stream);
  for (std::size_t layer = blocks.begin; layer < blocks.end; ++layer) {
    const nn::LayerNorm<P, D>& next = layer + 1 < blocks.end ? t.h[layer + 1]->ln_1 : *t.ln_f;
    std::tie(stream, normalized) = t.h[layer]->forward(stream, normalized, next, time);
  }
  return normalized;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::final_states(const Tensor<std::int32_t, D>& tokens) const {
  require(part_.num_stages == 1, "a rank has one or some of the {} stages of this GPT: parallel::Pipeline runs them",
          part_.num_stages);
  return normalized_states(embedded(tokens), tokens.dim(1));
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::project(const Variable<T, D>& states, std::int64_t time) const {
  const auto weight = transformer_.wte->weight.variable();
  const TensorAxis* axis = this->tensor_axis();
  if (axis == nullptr) return linear(states, weight);
  const Variable<T, D> logits = column_parallel_linear(states, weight, {}, *axis);
  return axis->sequence_parallel() ? reshape(logits, {logits.shape()[0] / time, time, logits.shape().back()}) : logits;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::logits(const Tensor<std::int32_t, D>& tokens) const {
  return project(final_states(tokens), tokens.dim(1));
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss_of(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets) const {
  const TensorAxis* axis = this->tensor_axis();
  if (axis == nullptr) return cross_entropy(logits, targets);
  return vocab_parallel_cross_entropy(logits, targets, transformer_.wte->held_rows().begin, options_.vocabulary, *axis);
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss(const Tensor<std::int32_t, D>& tokens,
                                            const Tensor<std::int32_t, D>& targets) const {
  return loss_of(logits(tokens), targets);
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::last_stage(const Variable<M, D>& x, const Tensor<std::int32_t, D>& targets) const {
  require(part_.has_stage(part_.num_stages - 1), "the last of {} stages does not lie here", part_.num_stages);
  return loss_of(project(normalized_states(x, targets.dim(1)), targets.dim(1)), targets);
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const TensorAxis* axis = this->tensor_axis();
  const Tensor<std::int32_t, D> read = this->sequence_parallel() ? divisible(tokens, options_.width, *axis) : tokens;
  Tensor<T, D> states = final_states(read).value();
  if (this->sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  const std::int64_t batch = tokens.dim(0);
  const std::int64_t time = tokens.dim(1);
  Tensor<T, D> last({batch, options_.width});
  for (std::int64_t row = 0; row < batch; ++row) {
    const T* state = states.data() + ((row + 1) * time - 1) * options_.width;
    std::copy_n(state, options_.width, last.data() + row * options_.width);
  }
  const Tensor<T, D> logits = linear(Variable<T, D>(last), transformer_.wte->weight.variable()).value();
  if (axis == nullptr) return logits;
  const Range held = transformer_.wte->held_rows();
  auto all = Tensor<T, D>::full({batch, options_.vocabulary}, T(0.0f));
  for (std::int64_t row = 0; row < batch; ++row) {
    std::copy_n(logits.data() + row * held.count(), held.count(), all.data() + row * options_.vocabulary + held.begin);
  }
  axis->all_reduce(all.span(), "logits of the next token")->wait();
  return all;
}

template class Gpt<Float32, Cpu>;
template class Gpt<Float64, Cpu>;
template class Gpt<MixedBfloat16, Cpu>;
template class Gpt<MixedFloat16, Cpu>;

}  // namespace trireme::models
