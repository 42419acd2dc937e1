#include "trireme/models/gpt.hpp"

#include <cmath>

namespace trireme::models {
namespace {

GptOptions checked(const GptOptions& options) {
  require(options.layers > 0 && options.block > 0 && options.vocabulary > 1,
          "a GPT needs layers and block above 0 and a vocabulary above 1, got {}, {} and {}", options.layers, options.block,
          options.vocabulary);
  require(options.heads > 0 && options.width > 0 && options.width % options.heads == 0,
          "a GPT's heads must divide its width, got {} heads and width {}", options.heads, options.width);
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

// Each row of tokens [batch, time] followed by as many zeros as that takes.
template <typename D>
Tensor<std::int32_t, D> with_time_divisible_by(std::int64_t divisor, const Tensor<std::int32_t, D>& tokens) {
  const std::int64_t time = tokens.dim(1);
  auto padded = Tensor<std::int32_t, D>::zeros({tokens.dim(0), (time + divisor - 1) / divisor * divisor});
  for (std::int64_t row = 0; row < tokens.dim(0); ++row) {
    std::copy_n(tokens.data() + row * time, time, padded.data() + row * padded.dim(1));
  }
  return padded;
}

}  // namespace

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options)
    : nn::Module<P, D>(parent, "transformer"),
      wte(*this, "wte",
          {.rows = options.vocabulary, .width = options.width, .initializer = Initializer::normal(0, 0.02), .split = true}),
      wpe(*this, "wpe", {.rows = options.block, .width = options.width, .initializer = Initializer::normal(0, 0.02)}),
      drop(*this, "drop", options.dropout),
      h([&] {
        const nn::TransformerOptions block{.heads = options.heads,
                                           .width = options.width,
                                           .dropout = options.dropout,
                                           .weight_deviation = 0.02,
                                           .projection_deviation = 0.02 / std::sqrt(2.0 * options.layers)};
        std::vector<std::unique_ptr<nn::TransformerBlock<P, D>>> blocks;
        for (int layer = 0; layer < options.layers; ++layer) {
          blocks.push_back(std::make_unique<nn::TransformerBlock<P, D>>(*this, fmt::format("h.{}", layer), block));
        }
        return blocks;
      }()),
      ln_f(*this, "ln_f", {.width = options.width}) {}

template <typename P, typename D>
Gpt<P, D>::Gpt(const GptOptions& options, const nn::ModelPart& part)
    : nn::Module<P, D>(part), options_(checked(options)), transformer_(*this, options_) {}

// The residual stream before the first block.
template <typename P, typename D>
Variable<typename P::Master, D> Gpt<P, D>::embedded(const Tensor<std::int32_t, D>& tokens) const {
  const Transformer& t = transformer_;
  const TensorAxis* axis = this->tensor_axis();
  if (axis == nullptr) return token_embedding(tokens, t.wte.weight.master(), t.wpe.weight.master());
  const Variable<M, D> of_tokens = t.wte.forward(tokens);
  return add(of_tokens,
             reshape(t.wpe.forward(positions_of(tokens, this->sequence_parallel() ? axis : nullptr)), of_tokens.shape()));
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::final_states(const Tensor<std::int32_t, D>& tokens) const {
  const Transformer& t = transformer_;
  require(tokens.shape().size() == 2 && tokens.dim(1) <= options_.block,
          "a GPT of {} positions reads tokens [batch, time], no longer than that, got {}", options_.block, tokens.shape());
  const std::int64_t time = tokens.dim(1);
  Variable<M, D> stream = t.drop.forward(embedded(tokens), time);
  Variable<T, D> normalized = t.h.front()->ln_1.forward(stream);
  for (std::size_t layer = 0; layer < t.h.size(); ++layer) {
    const nn::LayerNorm<P, D>& next = layer + 1 < t.h.size() ? t.h[layer + 1]->ln_1 : t.ln_f;
    std::tie(stream, normalized) = t.h[layer]->forward(stream, normalized, next, time);
  }
  return normalized;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::project(const Variable<T, D>& states) const {
  const auto weight = transformer_.wte.weight.variable();
  const TensorAxis* axis = this->tensor_axis();
  return axis == nullptr ? linear(states, weight) : column_parallel_linear(states, weight, {}, *axis);
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::logits(const Tensor<std::int32_t, D>& tokens) const {
  const Variable<T, D> logits = project(final_states(tokens));
  return this->sequence_parallel() ? reshape(logits, {tokens.dim(0), tokens.dim(1), logits.shape().back()}) : logits;
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss(const Tensor<std::int32_t, D>& tokens,
                                            const Tensor<std::int32_t, D>& targets) const {
  const TensorAxis* axis = this->tensor_axis();
  if (axis == nullptr) return cross_entropy(logits(tokens), targets);
  return vocab_parallel_cross_entropy(logits(tokens), targets, transformer_.wte.held_rows().begin, options_.vocabulary, *axis);
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const TensorAxis* axis = this->tensor_axis();
  // Sequence parallelism divides the rows evenly; what is appended comes later than the last token, which does not see it.
  const Tensor<std::int32_t, D> read = this->sequence_parallel() ? with_time_divisible_by(axis->size(), tokens) : tokens;
  Tensor<T, D> states = final_states(read).value();
  if (this->sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  const std::int64_t batch = tokens.dim(0);
  const std::int64_t time = tokens.dim(1);
  Tensor<T, D> last({batch, options_.width});
  for (std::int64_t row = 0; row < batch; ++row) {
    const T* state = states.data() + (row * read.dim(1) + time - 1) * options_.width;
    std::copy_n(state, options_.width, last.data() + row * options_.width);
  }
  const Tensor<T, D> logits = linear(Variable<T, D>(last), transformer_.wte.weight.variable()).value();
  if (axis == nullptr) return logits;
  const Range held = transformer_.wte.held_rows();
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
