#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct GptNeoXOptions {
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t hidden = 1536;  // features of a block's MLP
  std::int64_t vocabulary = 256;
  std::int64_t block = 2048;  // longest sequence
  ops::Activation activation = ops::Activation::gelu_erf;
  double epsilon = 1e-5;  // of the norms
  double rotary_base = 10000;
  double rotary_share = 0.25;     // share of each head's elements that are rotated, from the first on
  bool parallel_residual = true;  // attention and MLP read the same stream; otherwise the MLP reads the stream after attention
  bool attention_bias = true;
  bool tied = false;                    // the output layer's weight is the token embedding
  double unused_attention_dropout = 0;  // attention_dropout of folders; this model has no dropout
  double unused_hidden_dropout = 0;     // hidden_dropout of folders; not used either, not even in training
  double weight_deviation = 0.02;       // standard deviation of initial weights
};

// Causal self-attention with rotary positions in a part of each head (Black et al. 2022, arXiv 2204.06745). Input and result
// have the shape [batch, time, width]; in a sequence-parallel model they are this rank's rows [rows, width]. query_key_value
// [heads * 3 * size, width] holds query, key and value of each head, one head after the other. The ranks of a tensor axis
// divide the heads.
template <typename P, typename D = Cpu>
class GptNeoXAttention : public nn::Module<P, D> {
 public:
  using T = typename P::Compute;

  GptNeoXAttention(const nn::Module<P, D>& parent, std::string_view name, const GptNeoXOptions& options);

  // time: length of a sequence. document_starts [batch, time]: where each token's document starts in its sequence; may be
  // undefined.
  Variable<T, D> forward(const Variable<T, D>& x, std::int64_t time, const Tensor<std::int32_t, D>& document_starts = {}) const;

  nn::Linear<P, D> query_key_value;
  nn::Linear<P, D> dense;

 private:
  int heads_;  // of this rank
  std::int64_t size_;
  std::int64_t rotated_;  // elements of a head
  double base_;
};

// A block with norms first, which takes and returns a residual stream.
template <typename P, typename D = Cpu>
class GptNeoXBlock : public nn::Module<P, D> {
 public:
  GptNeoXBlock(const nn::Module<P, D>& parent, std::string_view name, const GptNeoXOptions& options);

  nn::Residual<P, D> forward(const nn::Residual<P, D>& x, const data::BasicTokenBatch<D>& batch) const;

  nn::LayerNorm<P, D> input_layernorm;
  nn::LayerNorm<P, D> post_attention_layernorm;
  GptNeoXAttention<P, D> attention;
  nn::Linear<P, D> dense_h_to_4h;
  nn::Linear<P, D> dense_4h_to_h;

 private:
  ops::Activation activation_;
  bool parallel_residual_;
};

// GPT-NeoX and Pythia (Black et al. 2022, arXiv 2204.06745). Names are those of Hugging Face's GPTNeoXForCausalLM. On a tensor
// axis the ranks divide heads, hidden features and vocabulary. The list of layers is the embedding, the blocks and the output
// layer; without ModelContext::layer_costs the blocks are divided evenly over the stages.
template <typename P, typename D = Cpu>
class GptNeoX : public nn::Staged<P, D, data::BasicTokenBatch<D>, nn::Residual<P, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicTokenBatch<D>;

  explicit GptNeoX(const GptNeoXOptions& options, const ModelContext& context = {});

  const GptNeoXOptions& options() const { return options_; }

  // tokens [batch, time <= block] -> [batch, time, vocabulary]; on a tensor axis each rank gets its part of the vocabulary.
  Variable<T, D> logits(const Tensor<std::int32_t, D>& tokens) const {
    return this->forward({.tokens = tokens, .targets = {}});
  }

  // targets [batch, time]; targets equal to ops::ignored_target are ignored.
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const { return embed_out_.loss(logits, batch.targets); }
  Loss<M, D> loss(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& targets) const {
    return nn::loss_of(*this, {.tokens = tokens, .targets = targets});
  }

  // Logits of the position after the last token: [batch, vocabulary]. Call it without a tape, on all ranks of a divided model.
  Tensor<T, D> next_token_logits(const Tensor<std::int32_t, D>& tokens) const;

 private:
  struct Decoder : nn::Module<P, D> {
    Decoder(const nn::Module<P, D>& parent, const GptNeoXOptions& options);

    nn::Embedding<P, D> embed_in;
    nn::ModuleList<GptNeoXBlock<P, D>> layers;
    nn::LayerNorm<P, D> final_layer_norm;
  };

  GptNeoXOptions options_;
  Decoder gpt_neox_;
  nn::TokenLogits<P, D> embed_out_;
};

extern template class GptNeoX<Float32, Cpu>;
extern template class GptNeoX<MixedBfloat16, Cpu>;
extern template class GptNeoX<MixedFloat16, Cpu>;
extern template class GptNeoX<Float32, Cuda>;
extern template class GptNeoX<MixedBfloat16, Cuda>;
extern template class GptNeoX<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
