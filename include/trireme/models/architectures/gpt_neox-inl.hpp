#pragma once

#include <string_view>
#include <vector>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/next_token-inl.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline std::int64_t rotated_elements(const GptNeoXOptions& options) {
  return static_cast<std::int64_t>(static_cast<double>(options.width / options.heads) * options.rotary_share);
}

inline GptNeoXOptions checked(const GptNeoXOptions& options) {
  require(options.layers > 0 && options.hidden > 0 && options.block > 0 && options.vocabulary > 1,
          "a GPT-NeoX needs layers, hidden and block above 0 and a vocabulary above 1, got {}, {}, {} and {}", options.layers,
          options.hidden, options.block, options.vocabulary);
  require(options.heads > 0 && options.width > 0 && options.width % options.heads == 0,
          "a GPT-NeoX's heads must divide its width, got {} heads and width {}", options.heads, options.width);
  require(options.rotary_share >= 0 && options.rotary_share <= 1 && rotated_elements(options) % 2 == 0,
          "a GPT-NeoX rotates an even number of the {} elements of a head, not a share of {}", options.width / options.heads,
          options.rotary_share);
  return options;
}

inline nn::LinearOptions linear_options(const GptNeoXOptions& options, std::int64_t in, std::int64_t out, nn::TensorSplit split,
                                        bool bias) {
  return {.in = in,
          .out = out,
          .bias = bias,
          .split = split,
          .weight_initializer = Initializer::normal(0, options.weight_deviation),
          .bias_initializer = Initializer::constant(0)};
}

template <typename P, typename D>
nn::TokenLogits<P, D> output_layer(const nn::Module<P, D>& model, const GptNeoXOptions& options,
                                   const nn::Embedding<P, D>& tokens) {
  if (options.tied) return nn::TokenLogits<P, D>(model, "embed_out", tokens);
  return nn::TokenLogits<P, D>(model, "embed_out",
                               nn::TokenLogitsOptions{.vocabulary = options.vocabulary,
                                                      .width = options.width,
                                                      .initializer = Initializer::normal(0, options.weight_deviation)});
}

}  // namespace detail

template <typename P, typename D>
GptNeoXAttention<P, D>::GptNeoXAttention(const nn::Module<P, D>& parent, std::string_view name, const GptNeoXOptions& options)
    : nn::Module<P, D>(parent, name),
      query_key_value(
          *this, "query_key_value",
          detail::linear_options(options, options.width, 3 * options.width, nn::TensorSplit::column, options.attention_bias)),
      dense(*this, "dense",
            detail::linear_options(options, options.width, options.width, nn::TensorSplit::row, options.attention_bias)),
      size_(options.width / options.heads),
      rotated_(detail::rotated_elements(options)),
      base_(options.rotary_base) {
  const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
  require(options.heads % ranks == 0, "{}: {} ranks of a tensor axis can't divide {} heads; use a number that divides them",
          this->name(), ranks, options.heads);
  heads_ = options.heads / ranks;
}

template <typename P, typename D>
Variable<typename P::Compute, D> GptNeoXAttention<P, D>::forward(const Variable<T, D>& x, std::int64_t time,
                                                                 const Tensor<std::int32_t, D>& document_starts) const {
  require(time > 0, "{}: a sequence has at least one token", this->name());
  const auto by_head = query_key_value.forward(x);
  const std::int64_t width = 3 * heads_ * size_, batch = by_head.value().numel() / (time * width);
  // [batch, time, 3 (query, key, value), heads, size]
  auto packed = permute(reshape(by_head, {batch, time, heads_, 3, size_}), {0, 1, 3, 2, 4});
  if (rotated_ > 0) {
    const std::vector<Slice> turned{{}, {}, {0, 2}, {}, {0, rotated_}};
    const auto before = slice(packed, turned);
    const auto after = rotary(reshape(before, {batch, time, 2 * heads_ * rotated_}),
                              {.size = rotated_, .heads = 2 * heads_, .base = base_}, document_starts);
    packed = slice_scatter(packed, reshape(after, before.shape()), turned);
  }
  const auto qkv = reshape(packed, {batch, time, width});
  return dense.forward(scaled_dot_product_attention(qkv, {}, {.heads = heads_, .causal = true}, {}, document_starts));
}

template <typename P, typename D>
GptNeoXBlock<P, D>::GptNeoXBlock(const nn::Module<P, D>& parent, std::string_view name, const GptNeoXOptions& options)
    : nn::Module<P, D>(parent, name),
      input_layernorm(*this, "input_layernorm", {.width = options.width, .epsilon = options.epsilon}),
      post_attention_layernorm(*this, "post_attention_layernorm", {.width = options.width, .epsilon = options.epsilon}),
      attention(*this, "attention", options),
      dense_h_to_4h(*this, "mlp.dense_h_to_4h",
                    detail::linear_options(options, options.width, options.hidden, nn::TensorSplit::column, true)),
      dense_4h_to_h(*this, "mlp.dense_4h_to_h",
                    detail::linear_options(options, options.hidden, options.width, nn::TensorSplit::row, true)),
      activation_(options.activation),
      parallel_residual_(options.parallel_residual) {}

template <typename P, typename D>
nn::Residual<P, D> GptNeoXBlock<P, D>::forward(const nn::Residual<P, D>& x, const data::BasicTokenBatch<D>& batch) const {
  const auto mlp = [this](const auto& normalized) {
    return dense_4h_to_h.forward(activation(activation_, dense_h_to_4h.forward(normalized)));
  };
  const auto [stream, normalized] = nn::settle(input_layernorm, x);
  const auto attended = attention.forward(normalized, batch.time(), batch.document_starts);
  if (parallel_residual_) {
    const auto transformed = mlp(post_attention_layernorm.forward(stream));
    return {.stream = stream, .pending = add(attended, transformed)};
  }
  const auto [middle, middle_normalized] = post_attention_layernorm.add_and_normalize(stream, attended);
  return {.stream = middle, .pending = mlp(middle_normalized)};
}

template <typename P, typename D>
GptNeoX<P, D>::Decoder::Decoder(const nn::Module<P, D>& parent, const GptNeoXOptions& options)
    : nn::Module<P, D>(parent, "gpt_neox"),
      embed_in(*this, "embed_in",
               {.rows = options.vocabulary,
                .width = options.width,
                .initializer = Initializer::normal(0, options.weight_deviation),
                .split = true}),
      layers(*this, "layers", options.layers, options),
      final_layer_norm(*this, "final_layer_norm", {.width = options.width, .epsilon = options.epsilon}) {}

template <typename P, typename D>
GptNeoX<P, D>::GptNeoX(const GptNeoXOptions& options, const ModelContext& context)
    : GptNeoX::Staged(context),
      options_(detail::checked(options)),
      gpt_neox_(*this, options_),
      embed_out_(detail::output_layer<P, D>(*this, options_, gpt_neox_.embed_in)) {
  const Decoder& d = gpt_neox_;
  const auto embed = [this, &d](const Batch& batch) {
    require(batch.tokens.shape().size() == 2 && batch.tokens.dim(1) <= options_.block,
            "a model of {} positions reads tokens [batch, time] with time up to that number, got {}", options_.block,
            batch.tokens.shape());
    return nn::Residual<P, D>{d.embed_in.forward(batch.tokens)};
  };
  const auto output = [this, &d](const nn::Residual<P, D>& x, const Batch& batch) {
    return embed_out_.forward(d.final_layer_norm.forward(x), batch);
  };
  this->layers(this->layer({d.embed_in}, embed).costs(0), d.layers,
               this->layer({d.final_layer_norm, embed_out_}, output).costs(0));
}

template <typename P, typename D>
Tensor<typename P::Compute, D> GptNeoX<P, D>::next_token_logits(const Tensor<std::int32_t, D>& tokens) const {
  return detail::next_token_logits(*this, gpt_neox_.final_layer_norm, embed_out_, tokens);
}

}  // namespace models
}  // namespace trireme
