#pragma once

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/architectures/next_token-inl.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline LlamaOptions checked(const LlamaOptions& options) {
  require(options.layers > 0 && options.width > 0 && options.hidden > 0 && options.block > 0 && options.vocabulary > 1,
          "a Llama needs layers, width, hidden and block above 0 and a vocabulary above 1, got {}, {}, {}, {} and {}",
          options.layers, options.width, options.hidden, options.block, options.vocabulary);
  require(options.windowed.empty() || options.windowed.size() == static_cast<std::size_t>(options.layers),
          "a Llama's `windowed` needs a value for each of its {} layers, or none, got {}", options.layers,
          options.windowed.size());
  return options;
}

template <typename P, typename D>
std::vector<typename LlamaBlock<P, D>::Options> block_options(const LlamaOptions& options) {
  const auto initializer = Initializer::normal(0, options.weight_deviation);
  typename LlamaBlock<P, D>::Options block{
      .attention = {.width = options.width,
                    .heads = options.heads,
                    .kv_heads = options.kv_heads,
                    .head_size = options.head_size,
                    .bias = options.attention_bias,
                    .output_bias = options.output_bias,
                    .query_key_norm = options.query_key_norm,
                    .epsilon = options.epsilon,
                    .rotary_base = options.rotary_base,
                    .rotary_scaling = options.rotary_scaling,
                    .window = options.window,
                    .weight_initializer = initializer},
      .mlp = {.width = options.width, .hidden = options.hidden, .bias = options.mlp_bias, .weight_initializer = initializer}};
  block.experts = options.experts;
  block.experts.width = options.width;
  if (options.experts.hidden == 0) block.experts.hidden = options.hidden;
  block.experts.auxiliary_loss /= options.layers;
  block.experts.z_loss /= options.layers;
  block.experts.weight_initializer = initializer;
  std::vector<typename LlamaBlock<P, D>::Options> blocks(static_cast<std::size_t>(options.layers), block);
  for (std::size_t layer = 0; layer < options.windowed.size(); ++layer) {
    if (!options.windowed[layer]) blocks[layer].attention.window = 0;
  }
  return blocks;
}

// Shares the embedding's weight if options.tied.
template <typename P, typename D>
nn::TokenLogits<P, D> output_layer(const nn::Module<P, D>& model, const LlamaOptions& options,
                                   const nn::Embedding<P, D>& tokens) {
  if (options.tied) return nn::TokenLogits<P, D>(model, "lm_head", tokens);
  return nn::TokenLogits<P, D>(model, "lm_head",
                               nn::TokenLogitsOptions{.vocabulary = options.vocabulary,
                                                      .width = options.width,
                                                      .initializer = Initializer::normal(0, options.weight_deviation)});
}

}  // namespace detail

template <typename P, typename D>
Llama<P, D>::Decoder::Decoder(const nn::Module<P, D>& parent, const LlamaOptions& options)
    : nn::Module<P, D>(parent, "model"),
      embed_tokens(*this, "embed_tokens",
                   {.rows = options.vocabulary,
                    .width = options.width,
                    .initializer = Initializer::normal(0, options.weight_deviation),
                    .split = true}),
      layers(*this, "layers", detail::block_options<P, D>(options)),
      norm(*this, "norm", {.width = options.width, .epsilon = options.epsilon}) {}

template <typename P, typename D>
Llama<P, D>::Llama(const LlamaOptions& options, const ModelContext& context)
    : Llama::Staged(context),
      options_(detail::checked(options)),
      decoder_(*this, options_),
      lm_head_(detail::output_layer<P, D>(*this, options_, decoder_.embed_tokens)) {
  const Decoder& d = decoder_;
  const auto embed = [this, &d](const Batch& batch) {
    require(batch.tokens.shape().size() == 2 && batch.tokens.dim(1) <= options_.block,
            "a model of {} positions reads tokens [batch, time] with time up to that number, got {}", options_.block,
            batch.tokens.shape());
    return nn::Residual<P, D>{d.embed_tokens.forward(batch.tokens)};
  };
  const auto output = [this, &d](const nn::Residual<P, D>& x, const Batch& batch) {
    return lm_head_.forward(d.norm.forward(x), batch);
  };
  this->layers(this->layer({d.embed_tokens}, embed).costs(0), d.layers, this->layer({d.norm, lm_head_}, output).costs(0));
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Llama<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  return detail::next_token_logits(*this, decoder_.norm, lm_head_, tokens);
}

template <typename P, typename D>
Tensor<typename P::Compute, D> Llama<P, D>::next_token_logits(std::span<const nn::NewTokens> tokens,
                                                              nn::KeyValueCache<T, D>& cache) const {
  const auto embed = [this](const detail::ReadTokens<D>& read) {
    return nn::Residual<P, D>{decoder_.embed_tokens.forward(read.tokens)};
  };
  return detail::next_token_logits(*this, embed, decoder_.layers, decoder_.norm, lm_head_, tokens, cache);
}

}  // namespace models
}  // namespace trireme
