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

}  // namespace

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options)
    : nn::Module<P, D>(parent, "transformer"),
      wte(*this, "wte", {.rows = options.vocabulary, .width = options.width, .initializer = Initializer::normal(0, 0.02)}),
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
Gpt<P, D>::Gpt(const GptOptions& options) : options_(checked(options)), transformer_(*this, options_) {}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::final_states(const Tensor<std::int32_t, D>& tokens) const {
  const Transformer& t = transformer_;
  Variable<M, D> stream = t.drop.forward(token_embedding(tokens, t.wte.weight.master(), t.wpe.weight.master()));
  Variable<T, D> normalized = t.h.front()->ln_1.forward(stream);
  for (std::size_t layer = 0; layer < t.h.size(); ++layer) {
    const nn::LayerNorm<P, D>& next = layer + 1 < t.h.size() ? t.h[layer + 1]->ln_1 : t.ln_f;
    std::tie(stream, normalized) = t.h[layer]->forward(stream, normalized, next);
  }
  return normalized;
}

template <typename P, typename D>
Variable<typename P::Compute, D> Gpt<P, D>::logits(const Tensor<std::int32_t, D>& tokens) const {
  return linear(final_states(tokens), transformer_.wte.weight.variable());
}

template <typename P, typename D>
Loss<typename P::Master, D> Gpt<P, D>::loss(const Tensor<std::int32_t, D>& tokens,
                                            const Tensor<std::int32_t, D>& targets) const {
  return cross_entropy(logits(tokens), targets);
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  require(Tape::current() == nullptr, "next_token_logits() records nothing: call it without a tape");
  const Tensor<T, D> states = final_states(tokens).value();
  const std::int64_t batch = tokens.dim(0);
  const std::int64_t time = tokens.dim(1);
  Tensor<T, D> last({batch, options_.width});
  for (std::int64_t row = 0; row < batch; ++row) {
    const T* state = states.data() + ((row + 1) * time - 1) * options_.width;
    std::copy_n(state, options_.width, last.data() + row * options_.width);
  }
  return linear(Variable<T, D>(last), transformer_.wte.weight.variable()).value();
}

template class Gpt<Float32, Cpu>;
template class Gpt<Float64, Cpu>;
template class Gpt<MixedBfloat16, Cpu>;
template class Gpt<MixedFloat16, Cpu>;

}  // namespace trireme::models
