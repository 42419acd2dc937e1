#pragma once

#include <cmath>

#include "trireme/core/export.hpp"
#include "trireme/models/gpt.hpp"

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
          .weight_deviation = 0.02,
          .projection_deviation = 0.02 / std::sqrt(2.0 * options.layers),
          .fp8 = options.fp8};
}

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

}  // namespace detail

template <typename P, typename D>
Gpt<P, D>::Transformer::Transformer(const nn::Module<P, D>& parent, const GptOptions& options)
    : nn::Module<P, D>(parent, "transformer"),
      wte(*this, "wte",
          {.rows = options.vocabulary, .width = options.width, .initializer = Initializer::normal(0, 0.02), .split = true}),
      wpe(*this, "wpe", {.rows = options.block, .width = options.width, .initializer = Initializer::normal(0, 0.02)}),
      drop(*this, "drop", options.dropout),
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
    return nn::Residual<P, D>{t.drop.forward(nn::embed_tokens(t.wte, t.wpe, batch.tokens), batch.time())};
  };
  const auto output = [this, &t](const nn::Residual<P, D>& x, const Batch& batch) {
    return lm_head_.forward(t.ln_f.forward(x), batch);
  };
  this->layers(this->layer({t.wte, t.wpe, t.drop}, embed).costs(0), t.h, this->layer({t.ln_f, lm_head_}, output).costs(0));
}

// x: of the output layer, tokens [batch, time] that may have been padded with sequences -> [batch, vocabulary].
template <typename P, typename D>
Tensor<typename P::Compute, D> Gpt<P, D>::last_logits(const nn::Residual<P, D>& x, std::int64_t batch,
                                                      std::int64_t time) const {
  const Collectives* axis = this->tensor_axis();
  Tensor<T, D> states = transformer_.ln_f.forward(x).value();
  if (this->sequence_parallel()) states = gather_rows(Variable<T, D>(states), *axis).value();
  states = states.reshape({states.shape().rows(), options_.width});
  Tensor<T, D> last({batch, options_.width});
  for (std::int64_t row = 0; row < batch; ++row) detail::copy(states.narrow((row + 1) * time - 1, 1), last.narrow(row, 1));
  const Tensor<T, D> logits = linear(Variable<T, D>(last), lm_head_.weight.variable()).value();
  if (axis == nullptr) return logits;
  const Range held = lm_head_.held_rows();
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
  const auto read = this->sequence_parallel() ? detail::divisible(tokens, options_.width, *this->tensor_axis()) : tokens;
  const auto x = this->before_last_layer({.tokens = read, .targets = {}});
  Tensor<T, D> logits = x ? last_logits(*x, tokens.dim(0), tokens.dim(1)) : Tensor<T, D>({tokens.dim(0), options_.vocabulary});
  const Collectives* ranks = this->context().pipeline.get();
  if (ranks != nullptr) {
    ranks->broadcast(logits.span(), this->rank_of_last_stage(), "logits of the next token").wait_on_host();
  }
  return logits;
}

}  // namespace models
}  // namespace trireme
