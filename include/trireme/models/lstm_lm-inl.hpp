#pragma once

#include "trireme/models/lstm_lm.hpp"

namespace trireme::models {
namespace detail {

inline LstmLmOptions checked(const LstmLmOptions& options) {
  require(options.vocabulary > 1 && options.embedding > 0 && options.hidden > 0 && options.layers > 0,
          "an LSTM language model needs a vocabulary above 1 and embedding, hidden and layers above 0, got {}, {}, {} and {}",
          options.vocabulary, options.embedding, options.hidden, options.layers);
  return options;
}

}  // namespace detail

template <typename P, typename D>
LstmLm<P, D>::LstmLm(const LstmLmOptions& options, const ModelContext& context)
    : nn::Module<P, D>(one_stage(context, "LstmLm")),
      options_(detail::checked(options)),
      embed_(*this, "embed", {.rows = options.vocabulary, .width = options.embedding}),
      embed_dropout_(*this, "embed_dropout", options.dropout),
      lstm_(*this, "lstm",
            {.in = options.embedding, .hidden = options.hidden, .layers = options.layers, .dropout = options.dropout}),
      lstm_dropout_(*this, "lstm_dropout", options.dropout),
      fc_(*this, "fc", {.in = options.hidden, .out = options.vocabulary}) {}

template <typename P, typename D>
typename LstmLm<P, D>::Logits LstmLm<P, D>::logits(const Tensor<std::int32_t, D>& tokens, const State& state) const {
  require(tokens.shape().size() == 2, "an LSTM language model reads tokens [batch, time], got {}", tokens.shape());
  auto [out, next] = lstm_.forward(embed_dropout_.forward(embed_.forward(tokens)), state);
  return {.logits = fc_.forward(lstm_dropout_.forward(out)), .state = std::move(next)};
}

template <typename P, typename D>
typename LstmLm<P, D>::LossAndState LstmLm<P, D>::loss(const Tensor<std::int32_t, D>& tokens,
                                                       const Tensor<std::int32_t, D>& targets, const State& state) const {
  const Logits result = logits(tokens, state);
  return {.loss = cross_entropy(result.logits, targets), .state = result.state.detached()};
}

}  // namespace trireme::models
