#pragma once

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/lstm_lm.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
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
    : nn::Staged<P, D, Batch>(context),
      options_(detail::checked(options)),
      embed_(*this, "embed", {.rows = options.vocabulary, .width = options.embedding}),
      embed_dropout_(*this, "embed_dropout", options.dropout),
      lstm_(*this, "lstm",
            {.in = options.embedding,
             .hidden = options.hidden,
             .layers = options.layers,
             .dropout = options.dropout,
             .carried = true}),
      lstm_dropout_(*this, "lstm_dropout", options.dropout),
      fc_(*this, "fc", {.in = options.hidden, .out = options.vocabulary}) {
  const auto embed = [this](const Batch& batch) {
    require(!batch.document_starts.defined(),
            "an LSTM reads a row as one text: it can't take rows with document_starts, which hold several documents");
    return embedded(batch.tokens);
  };
  this->layers(this->layer({embed_, embed_dropout_}, embed), lstm_, nn::chain(lstm_dropout_, fc_));
}

template <typename P, typename D>
Variable<typename P::Compute, D> LstmLm<P, D>::embedded(const Tensor<std::int32_t, D>& tokens) const {
  require(tokens.shape().size() == 2, "an LSTM language model reads tokens [batch, time], got {}", tokens.shape());
  return embed_dropout_.forward(embed_.forward(tokens));
}

template <typename P, typename D>
Variable<typename P::Compute, D> LstmLm<P, D>::logits(const Tensor<std::int32_t, D>& tokens, State& state) const {
  auto [out, after] = lstm_.forward(embedded(tokens), state);
  state = std::move(after);
  return fc_.forward(lstm_dropout_.forward(out));
}

template <typename P, typename D>
Loss<typename P::Compute, D> LstmLm<P, D>::loss(const Variable<T, D>& logits, const Batch& batch) const {
  return cross_entropy(logits, batch.targets);
}

}  // namespace models
}  // namespace trireme
