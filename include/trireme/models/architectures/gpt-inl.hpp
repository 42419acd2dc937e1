#pragma once

#include <cmath>

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/next_token-inl.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline GptOptions checked(const GptOptions& options) {
  require(options.layers > 0 && options.block > 0 && options.vocabulary > 1,
          "a GPT needs layers and block above 0 and a vocabulary above 1, got {}, {} and {}", options.layers, options.block,
          options.vocabulary);
  require(options.heads > 0 && options.width > 0 && options.width % options.heads == 0,
          "a GPT's heads must divide its width, got {} heads and width {}", options.heads, options.width);
  return options;
}

inline nn::TransformerOptions block_options(const GptOptions& options) {
  return {.heads = options.heads,
          .width = options.width,
          .dropout = options.dropout,
          .attention_dropout = options.attention_dropout,
          .weight_deviation = options.weight_deviation,
          .projection_deviation = options.weight_deviation / std::sqrt(2.0 * options.layers),
          .fp8 = options.fp8};
}

}  // namespace detail

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options)
    : nn::Module<P, D>(parent, "transformer"),
      wte(*this, "wte",
          {.rows = options.vocabulary,
           .width = options.width,
           .initializer = Initializer::normal(0, options.weight_deviation),
           .split = true}),
      wpe(*this, "wpe",
          {.rows = options.block, .width = options.width, .initializer = Initializer::normal(0, options.weight_deviation)}),
      drop(*this, "drop", options.embedding_dropout.value_or(options.dropout)),
      h(*this, "h", options.layers, detail::block_options(options)),
      ln_f(*this, "ln_f", {.width = options.width}) {}

template <typename P, typename D>
Gpt<P, D>::Gpt(const GptOptions& options, const ModelContext& context)
    : Gpt::Staged(context),
      options_(detail::checked(options)),
      transformer_(*this, options_),
      lm_head_(*this, "lm_head", transformer_.wte) {
  const Transformer& t = transformer_;
  const auto embed = [&t](const Batch& batch) {
    return nn::Residual<P, D>{t.drop.forward(nn::embed_tokens(t.wte, t.wpe, batch.tokens, batch.document_starts))};
  };
  const auto output = [this, &t](const nn::Residual<P, D>& x, const Batch& batch) {
    return lm_head_.forward(t.ln_f.forward(x), batch);
  };
  this->layers(this->layer({t.wte, t.wpe, t.drop}, embed).costs(0), t.h, this->layer({t.ln_f, lm_head_}, output).costs(0));
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  return detail::next_token_logits(*this, transformer_.ln_f, lm_head_, tokens);
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::next_token_logits(std::span<const nn::NewTokens> tokens,
                                                            nn::KeyValueCache<T, D>& cache) const {
  const auto embed = [this](const detail::ReadTokens<D>& read) {
    const auto of_tokens = transformer_.wte.forward(read.tokens);
    return nn::Residual<P, D>{add(of_tokens, reshape(transformer_.wpe.forward(read.positions), of_tokens.shape()))};
  };
  return detail::next_token_logits(*this, embed, transformer_.h, transformer_.ln_f, lm_head_, tokens, cache);
}

}  // namespace models
}  // namespace trireme
