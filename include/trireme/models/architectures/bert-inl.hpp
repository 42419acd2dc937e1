#pragma once

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/losses.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/bert.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline BertOptions checked(const BertOptions& options) {
  require(options.layers > 0 && options.width > 0 && options.hidden > 0 && options.block > 0 && options.vocabulary > 1 &&
              options.token_types > 0,
          "a BERT needs layers, width, hidden, block and token_types above 0 and a vocabulary above 1, got {}, {}, {}, {}, {} "
          "and {}",
          options.layers, options.width, options.hidden, options.block, options.token_types, options.vocabulary);
  require(options.classes >= 0 && options.classes != 1,
          "a BERT has 2 classes or more, or 0 for the masked-language head, got {}", options.classes);
  require(options.labels.empty() || std::ssize(options.labels) == options.classes,
          "a BERT names all of its {} classes or none, got {} labels", options.classes, options.labels.size());
  return options;
}

inline Initializer first_weights(const BertOptions& options) { return Initializer::normal(0, options.weight_deviation); }

inline nn::TransformerEncoderLayerOptions block_options(const BertOptions& options) {
  return {.d_model = options.width,
          .nhead = options.heads,
          .dim_feedforward = options.hidden,
          .activation = options.activation,
          .layer_norm_eps = options.epsilon,
          .norm_first = false,
          .dropout = options.dropout,
          .attention_dropout = options.attention_dropout,
          .mlp_dropout = 0,
          .weight_initializer = first_weights(options)};
}

inline nn::LinearOptions dense_options(const BertOptions& options, std::int64_t out) {
  return {.in = options.width,
          .out = out,
          .weight_initializer = first_weights(options),
          .bias_initializer = Initializer::constant(0)};
}

}  // namespace detail

template <typename P, typename D>
Bert<P, D>::Embeddings::Embeddings(const nn::Module<P, D>& parent, const BertOptions& options)
    : nn::Module<P, D>(parent, "embeddings"),
      word_embeddings(
          *this, "word_embeddings",
          {.rows = options.vocabulary, .width = options.width, .initializer = detail::first_weights(options), .split = true}),
      position_embeddings(*this, "position_embeddings",
                          {.rows = options.block, .width = options.width, .initializer = detail::first_weights(options)}),
      token_type_embeddings(
          *this, "token_type_embeddings",
          {.rows = options.token_types, .width = options.width, .initializer = detail::first_weights(options)}),
      norm(*this, "LayerNorm", {.width = options.width, .epsilon = options.epsilon}),
      dropout(*this, "dropout", options.dropout) {}

template <typename P, typename D>
Variable<typename P::Master, D> Bert<P, D>::Embeddings::forward(const Batch& batch) const {
  const auto tokens = nn::embed_tokens(word_embeddings, position_embeddings, batch.tokens);
  require(!batch.token_types.defined() || batch.token_types.shape() == batch.tokens.shape(),
          "tokens {} have token types {}: give one for each token, or leave them undefined", batch.tokens.shape(),
          batch.token_types.defined() ? batch.token_types.shape() : Shape());
  Tensor<std::int32_t, D> types =
      batch.token_types.defined() ? batch.token_types : Tensor<std::int32_t, D>::zeros(batch.tokens.shape());
  if (this->sequence_parallel()) {
    const Range rows = even_part(types.numel(), *this->tensor_axis());
    types = types.reshape({types.numel()}).narrow(rows.begin, rows.count());
  }
  const auto all = tokens + reshape(token_type_embeddings.forward(types), tokens.shape());
  return dropout.forward(norm.normalize_stream(all));
}

template <typename P, typename D>
Bert<P, D>::Backbone::Backbone(const nn::Module<P, D>& parent, const BertOptions& options)
    : nn::Module<P, D>(parent, "bert"),
      embeddings(*this, options),
      layer(*this, "encoder.layer", options.layers, detail::block_options(options)) {}

template <typename P, typename D>
Bert<P, D>::MaskedHead::MaskedHead(const nn::Module<P, D>& parent, const BertOptions& options,
                                   const nn::Embedding<P, D>& tokens)
    : nn::Module<P, D>(parent, "cls.predictions"),
      dense(*this, "transform.dense", detail::dense_options(options, options.width)),
      norm(*this, "transform.LayerNorm", {.width = options.width, .epsilon = options.epsilon}),
      decoder(*this, "decoder", tokens, true),
      activation(options.activation) {}

// The ranks do not divide the dense layer; in a sequence-parallel model each rank computes its own rows.
template <typename P, typename D>
Variable<typename P::Compute, D> Bert<P, D>::MaskedHead::forward(const nn::Residual<P, D>& x, const Batch& batch) const {
  const auto states = cast<T>(x.settled().stream);
  const auto transformed = this->sequence_parallel()
                               ? linear(states, computed_weight<T>(this->shared(dense.weight)), this->shared(dense.bias))
                               : dense.forward(states);
  return decoder.forward(norm.forward(cast<M>(trireme::activation(activation, transformed))), batch);
}

template <typename P, typename D>
Bert<P, D>::Classifier::Classifier(const nn::Module<P, D>& parent, const BertOptions& options)
    : nn::Module<P, D>(parent, "classification"),
      pooler(*this, "pooler", detail::dense_options(options, options.width)),
      classifier(*this, "classifier", detail::dense_options(options, options.classes)),
      dropout(options.classifier_dropout.value_or(options.dropout)) {}

// Every rank of a tensor axis computes the whole classifier, for all samples.
template <typename P, typename D>
Variable<typename P::Compute, D> Bert<P, D>::Classifier::forward(const nn::Residual<P, D>& x, const Batch& batch) const {
  Variable<T, D> states = cast<T>(x.settled().stream);
  if (this->sequence_parallel()) states = gather_rows(states, *this->tensor_axis());
  const std::int64_t width = states.shape().back();
  const auto first = reshape(narrow(reshape(states, {batch.rows(), batch.time(), width}), 1, 0, 1), {batch.rows(), width});
  auto pooled = tanh(linear(first, pooler.weight.variable(), pooler.bias.master()));
  if (this->training()) pooled = trireme::dropout(pooled, dropout, this->name());
  return linear(pooled, classifier.weight.variable(), classifier.bias.master());
}

template <typename P, typename D>
Bert<P, D>::Bert(const BertOptions& options, const ModelContext& context)
    : Bert::Staged(context), options_(detail::checked(options)), bert_(*this, options_) {
  require(!context.lora, "a Bert has no LoRA yet: Llama, Gpt, GptNeoX and models of your own have");
  const auto embed = [this](const Batch& batch) { return nn::Residual<P, D>{bert_.embeddings.forward(batch)}; };
  const auto first = this->layer({bert_.embeddings}, embed).costs(0);
  if (options_.classes > 0) {
    classifier_.emplace(*this, options_);
    const auto output = [this](const nn::Residual<P, D>& x, const Batch& batch) { return classifier_->forward(x, batch); };
    this->layers(first, bert_.layer, this->layer({*classifier_}, output).costs(0));
  } else {
    masked_head_.emplace(*this, options_, bert_.embeddings.word_embeddings);
    const auto output = [this](const nn::Residual<P, D>& x, const Batch& batch) { return masked_head_->forward(x, batch); };
    this->layers(first, bert_.layer, this->layer({*masked_head_}, output).costs(0));
  }
}

template <typename P, typename D>
Loss<typename P::Master, D> Bert<P, D>::loss(const Variable<T, D>& logits, const Batch& batch) const {
  return classifier_ ? cross_entropy(logits, batch.targets) : masked_head_->decoder.loss(logits, batch.targets);
}

}  // namespace models
}  // namespace trireme
