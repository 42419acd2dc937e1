#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/ops/embedding/positions.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

namespace detail {

// Returns the positions of all tokens [batch, time], or of this rank's rows if an axis divides the rows. document_starts is as
// in embed_tokens().
template <typename D>
Tensor<std::int32_t, D> positions_of(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& document_starts,
                                     const Collectives* axis) {
  const Range rows = axis == nullptr ? Range{0, tokens.numel()} : even_part(tokens.numel(), *axis);
  Tensor<std::int32_t, D> positions({rows.count()});
  ops::positions(rows.begin, tokens.dim(1), positions);
  if (!document_starts.defined()) return positions;
  return subtract(positions, document_starts.reshape({tokens.numel()}).narrow(rows.begin, rows.count()));
}

}  // namespace detail

// The sum of the embeddings of tokens [batch, time] and of their positions: [batch, time, width], or in a sequence-parallel
// model this rank's rows of this sum. Positions count from the start of each token's document, given by document_starts [batch,
// time], or from the start of the sequence if document_starts is undefined.
template <typename P, typename D>
Variable<typename P::Master, D> embed_tokens(const Embedding<P, D>& of_tokens, const Embedding<P, D>& of_positions,
                                             const Tensor<std::int32_t, D>& tokens,
                                             const Tensor<std::int32_t, D>& document_starts = {}) {
  const std::int64_t longest = of_positions.weight.info().placement.shape[0];
  require(tokens.shape().size() == 2 && tokens.dim(1) <= longest,
          "a model of {} positions reads tokens [batch, time] with time up to that number, got {}", longest, tokens.shape());
  require(!document_starts.defined() || document_starts.shape() == tokens.shape(),
          "document_starts {} do not belong to tokens {}", document_starts.shape(), tokens.shape());
  const Collectives* axis = of_tokens.tensor_axis();
  if (axis == nullptr && !document_starts.defined()) {
    return token_embedding(tokens, of_tokens.weight.master(), of_positions.weight.master());
  }
  const auto sum = of_tokens.forward(tokens);
  const auto positions = detail::positions_of(tokens, document_starts, of_tokens.sequence_parallel() ? axis : nullptr);
  return add(sum, reshape(of_positions.forward(positions), sum.shape()));
}

struct TokenEmbeddingOptions {
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // the longest sequence
  std::int64_t width = 0;
  double dropout = 0;
  Initializer initializer = Initializer::normal(0, 0.02);
};

// The first layer of a language model. It takes a batch with tokens [batch, time] and returns the residual stream [batch, time,
// width]. The ranks of a tensor axis divide the vocabulary.
template <typename P, typename D = Cpu>
class TokenEmbedding : public Module<P, D> {
 public:
  TokenEmbedding(const Module<P, D>& parent, std::string_view name, const TokenEmbeddingOptions& options)
      : Module<P, D>(parent, name),
        tokens(*this, "tokens",
               {.rows = options.vocabulary, .width = options.width, .initializer = options.initializer, .split = true}),
        positions(*this, "positions", {.rows = options.positions, .width = options.width, .initializer = options.initializer}),
        dropout(*this, "dropout", options.dropout) {}

  Variable<typename P::Master, D> forward(const Tensor<std::int32_t, D>& of,
                                          const Tensor<std::int32_t, D>& document_starts = {}) const {
    return dropout.forward(embed_tokens(tokens, positions, of, document_starts));
  }
  template <typename Batch>
  requires requires(const Batch& batch) { batch.tokens; }
  Variable<typename P::Master, D> forward(const Batch& batch) const {
    if constexpr (requires { batch.document_starts; }) {
      return forward(batch.tokens, batch.document_starts);
    } else {
      return forward(batch.tokens);
    }
  }

  Embedding<P, D> tokens;
  Embedding<P, D> positions;
  Dropout<P, D> dropout;
};

struct TokenLogitsOptions {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  Initializer initializer = Initializer::normal(0, 0.02);
};

// The last layer of a language model: states [batch, time, width] -> logits [batch, time, vocabulary]; on a tensor axis each
// rank gets its part of the vocabulary. The layer uses the weight of an embedding (tied) or a weight of its own.
template <typename P, typename D = Cpu>
class TokenLogits : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  // Uses the weight of `tokens` (tied). has_bias: adds a bias [vocabulary], as BERT does.
  TokenLogits(const Module<P, D>& parent, std::string_view name, const Embedding<P, D>& tokens, bool has_bias = false)
      : Module<P, D>(parent, name),
        weight(this->share(tokens.weight)),
        held_rows_(tokens.held_rows()),
        vocabulary_(shape_of(tokens)[0]),
        width_(shape_of(tokens)[1]) {
    if (!has_bias) return;
    Placement placement{.shape = {vocabulary_}};
    if (this->tensor_axis() != nullptr) {
      placement.dim = 0;
      placement.ranges = {held_rows_};
    }
    bias = this->add_parameter("bias", placement, Initializer::constant(0));
  }

  TokenLogits(const Module<P, D>& parent, std::string_view name, const TokenLogitsOptions& options)
      : Module<P, D>(parent, name), vocabulary_(options.vocabulary), width_(options.width) {
    require(options.vocabulary > 0 && options.width > 0, "{}: logits need vocabulary and width above 0, got {} and {}",
            this->name(), options.vocabulary, options.width);
    Placement placement{.shape = {options.vocabulary, options.width}};
    held_rows_ = {0, options.vocabulary};
    if (const Collectives* axis = this->tensor_axis()) {
      held_rows_ = even_part(options.vocabulary, *axis);
      placement.dim = 0;
      placement.ranges = {held_rows_};
    }
    weight = this->add_parameter("weight", placement, options.initializer);
  }

  Variable<T, D> forward(const Variable<T, D>& states, std::int64_t time) const {
    return this->named([&] {
      const Collectives* axis = this->tensor_axis();
      if (axis == nullptr) return linear(states, weight.variable(), bias.master());
      const Variable<T, D> logits =
          column_parallel_linear(states, weight.variable(), bias.master(), *axis, this->sequence_parallel());
      return this->sequence_parallel() ? reshape(logits, {logits.shape()[0] / time, time, logits.shape().back()}) : logits;
    });
  }
  template <typename Batch>
  requires requires(const Batch& batch) { batch.time(); }
  Variable<T, D> forward(const Variable<T, D>& states, const Batch& batch) const { return forward(states, batch.time()); }

  // Cross-entropy with targets [batch, time]; targets equal to ops::ignored_target are ignored.
  Loss<M, D> loss(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets) const {
    const Collectives* axis = this->tensor_axis();
    if (axis == nullptr) return cross_entropy(logits, targets);
    return vocab_parallel_cross_entropy(logits, targets, held_rows_.begin, vocabulary_, *axis);
  }

  Range held_rows() const { return held_rows_; }  // of the vocabulary
  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t width() const { return width_; }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 private:
  // The shape of the whole weight, also before the model is divided into stages.
  const Shape& shape_of(const Embedding<P, D>& tokens) const {
    return this->store().registered(tokens.weight.number()).placement.shape;
  }

  Range held_rows_;
  std::int64_t vocabulary_;
  std::int64_t width_;
};

}  // namespace nn
}  // namespace trireme
