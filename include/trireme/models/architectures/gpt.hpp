#pragma once

#include <optional>
#include <span>

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"
#include "trireme/nn/attention/transformer.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct GptOptions {
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t block = 256;  // longest sequence
  std::int64_t vocabulary = 256;
  double dropout = 0;                            // of the embedding and of the outputs of attention and MLP
  std::optional<double> embedding_dropout = {};  // of the embedding, if it differs from `dropout`
  double attention_dropout = 0;                  // of attention weights, see nn::TransformerOptions
  Float8Scaling fp8 = Float8Scaling::none;       // of the blocks' linear layers; with MixedBfloat16 and without a tensor axis
  double weight_deviation = 0.02;                // standard deviation of initial weights
};

// GPT-2 (Radford et al. 2019). Names are those of Hugging Face's GPT2LMHeadModel; the output layer is tied to the token
// embedding. On a tensor axis the ranks divide heads, hidden features and vocabulary. The list of layers is the embedding, the
// blocks and the output layer; without ModelContext::layer_costs the blocks are divided evenly over the stages.
template <typename P, typename D = Cpu>
class Gpt : public nn::Staged<P, D, data::BasicTokenBatch<D>, nn::Residual<P, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicTokenBatch<D>;

  explicit Gpt(const GptOptions& options, const ModelContext& context = {});

  const GptOptions& options() const { return options_; }

  // tokens [batch, time <= block] -> [batch, time, vocabulary]; on a tensor axis each rank gets its part of the vocabulary.
  Variable<T, D> logits(const Tensor<std::int32_t, D>& tokens) const {
    return this->forward({.tokens = tokens, .targets = {}});
  }

  // targets [batch, time]; targets equal to ops::ignored_target are ignored.
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const { return lm_head_.loss(logits, batch.targets); }
  Loss<M, D> loss(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& targets) const {
    return nn::loss_of(*this, {.tokens = tokens, .targets = targets});
  }

  // Logits of the position after the last token: [batch, vocabulary]. Call it without a tape, on all ranks of a divided model.
  Tensor<T, D> next_token_logits(const Tensor<std::int32_t, D>& tokens) const;
  // Logits after the last token of each part: [parts, vocabulary]. Each part continues a sequence of the cache.
  Tensor<T, D> next_token_logits(std::span<const nn::NewTokens> tokens, nn::KeyValueCache<T, D>& cache) const;

 private:
  struct Transformer : nn::Module<P, D> {
    Transformer(const nn::Module<P, D>& parent, const GptOptions& options);

    nn::Embedding<P, D> wte;
    nn::Embedding<P, D> wpe;
    nn::Dropout<P, D> drop;
    nn::ModuleList<nn::TransformerBlock<P, D>> h;
    nn::LayerNorm<P, D> ln_f;
  };

  GptOptions options_;
  Transformer transformer_;
  nn::TokenLogits<P, D> lm_head_;
};

extern template class Gpt<Float32, Cpu>;
extern template class Gpt<MixedBfloat16, Cpu>;
extern template class Gpt<MixedFloat16, Cpu>;
extern template class Gpt<Float32, Cuda>;
extern template class Gpt<MixedBfloat16, Cuda>;
extern template class Gpt<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
