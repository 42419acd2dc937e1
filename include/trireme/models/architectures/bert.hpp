#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/nn/attention/encoder_layer.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct BertOptions {
  int layers = 12;
  int heads = 12;
  std::int64_t width = 768;
  std::int64_t hidden = 3072;  // features of a block's MLP
  std::int64_t vocabulary = 30522;
  std::int64_t block = 512;      // longest sequence
  std::int64_t token_types = 2;  // kinds of sentences in a sequence
  ops::Activation activation = ops::Activation::gelu_erf;
  double epsilon = 1e-12;                         // of the norms
  double dropout = 0.1;                           // of the embedding, outputs of attention and MLP, and the classifier's input
  std::optional<double> classifier_dropout = {};  // of the classifier's input, if it differs from `dropout`
  double attention_dropout = 0.1;                 // of attention weights, see nn::MultiheadAttentionOptions
  std::int64_t classes = 0;                       // above 0: a classifier of sequences in place of the masked-language head
  std::vector<std::string> labels = {};           // the names of the classes, or none
  double weight_deviation = 0.02;                 // standard deviation of initial weights
};

// BERT (Devlin et al. 2018, arXiv 1810.04805). Names are those of Hugging Face's BertForMaskedLM or, with `classes`,
// BertForSequenceClassification, but the blocks have torch.nn's names. The masked-language head shares the weight of the token
// embedding; the classifier reads tanh(dense) of the first token. On a tensor axis the ranks divide heads, hidden features and
// vocabulary. The list of layers is the embedding, the blocks and the head; without ModelContext::layer_costs the blocks are
// divided evenly over the stages.
template <typename P, typename D = Cpu>
class Bert : public nn::Staged<P, D, data::BasicTextBatch<D>, nn::Residual<P, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicTextBatch<D>;

  explicit Bert(const BertOptions& options, const ModelContext& context = {});

  const BertOptions& options() const { return options_; }

  // tokens [batch, time <= block] -> [batch, time, vocabulary]; on a tensor axis each rank gets its part of the vocabulary. A
  // classifier returns [batch, classes].
  Variable<T, D> logits(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& key_padding_mask = {}) const {
    return this->forward({.tokens = tokens, .key_padding_mask = key_padding_mask});
  }

  // Cross-entropy with targets [batch, time], or [batch] for a classifier; targets equal to data::no_target are ignored.
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const;

 private:
  // Tokens -> [batch, time, width], or in a sequence-parallel model this rank's rows of this result.
  struct Embeddings : nn::Module<P, D> {
    Embeddings(const nn::Module<P, D>& parent, const BertOptions& options);
    Variable<M, D> forward(const Batch& batch) const;

    nn::Embedding<P, D> word_embeddings;
    nn::Embedding<P, D> position_embeddings;
    nn::Embedding<P, D> token_type_embeddings;
    nn::LayerNorm<P, D> norm;
    nn::Dropout<P, D> dropout;
  };

  struct Backbone : nn::Module<P, D> {
    Backbone(const nn::Module<P, D>& parent, const BertOptions& options);

    Embeddings embeddings;
    nn::ModuleList<nn::TransformerEncoderLayer<P, D>> layer;
  };

  struct MaskedHead : nn::Module<P, D> {
    MaskedHead(const nn::Module<P, D>& parent, const BertOptions& options, const nn::Embedding<P, D>& tokens);
    Variable<T, D> forward(const nn::Residual<P, D>& x, const Batch& batch) const;

    nn::Linear<P, D> dense;
    nn::LayerNorm<P, D> norm;
    nn::TokenLogits<P, D> decoder;
    ops::Activation activation;
  };

  struct Classifier : nn::Module<P, D> {
    Classifier(const nn::Module<P, D>& parent, const BertOptions& options);
    Variable<T, D> forward(const nn::Residual<P, D>& x, const Batch& batch) const;

    nn::Linear<P, D> pooler;
    nn::Linear<P, D> classifier;
    double dropout;
  };

  BertOptions options_;
  Backbone bert_;
  std::optional<MaskedHead> masked_head_;  // either the head or the classifier is set
  std::optional<Classifier> classifier_;
};

extern template class Bert<Float32, Cpu>;
extern template class Bert<MixedBfloat16, Cpu>;
extern template class Bert<MixedFloat16, Cpu>;
extern template class Bert<Float32, Cuda>;
extern template class Bert<MixedBfloat16, Cuda>;
extern template class Bert<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
