#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"
#include "trireme/nn/attention/rotary_attention.hpp"
#include "trireme/nn/experts/experts.hpp"
#include "trireme/nn/layers/gated.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Options of Llama 2 and 3, and of Mistral, Mixtral, Qwen 2 and Qwen 3.
struct LlamaOptions {
  int layers = 6;
  int heads = 6;
  int kv_heads = 0;            // 0: as many as heads
  std::int64_t head_size = 0;  // 0: width / heads
  std::int64_t width = 384;
  std::int64_t hidden = 1024;  // features of a block's MLP
  std::int64_t vocabulary = 256;
  std::int64_t block = 2048;  // longest sequence
  double epsilon = 1e-6;      // of RMS norms
  double rotary_base = 10000;
  ops::RotaryScaling rotary_scaling = {};
  bool tied = false;            // the output layer's weight is the token embedding
  bool attention_bias = false;  // of queries, keys and values
  bool output_bias = false;     // of attention's last layer
  bool mlp_bias = false;
  bool query_key_norm = false;
  std::int64_t window = 0;          // above 0: a token sees only keys that are fewer places away
  std::vector<bool> windowed = {};  // for each layer, whether it uses `window`; empty: all do
  // If experts.count is above 0, experts replace the MLP in all blocks. The experts use the model's width and initializer, and
  // the model's number of hidden features unless experts.hidden is given. The factors of the experts' losses apply to the
  // means over layers.
  nn::MixtureOfExpertsOptions experts = {};
  double unused_auxiliary_loss = 0.001;  // router_aux_loss_coef of folders, kept if experts.auxiliary_loss is 0
  double unused_attention_dropout = 0;   // attention_dropout of folders; attention has no dropout here, not even in training
  double weight_deviation = 0.02;        // standard deviation of initial weights
};

// A pre-norm block with RMS norms, rotary positions and SwiGLU (Touvron et al. 2023, arXiv 2302.13971).
template <typename P, typename D = Cpu>
class LlamaBlock : public nn::Module<P, D> {
 public:
  struct Options {
    nn::RotaryAttentionOptions attention;
    nn::GatedMlpOptions mlp;
    nn::MixtureOfExpertsOptions experts = {};  // replace the MLP if count is above 0
  };

  LlamaBlock(const nn::Module<P, D>& parent, std::string_view name, const Options& options)
      : nn::Module<P, D>(parent, name),
        input_layernorm(*this, "input_layernorm", {.width = options.mlp.width, .epsilon = options.attention.epsilon}),
        self_attn(*this, "self_attn", options.attention),
        post_attention_layernorm(*this, "post_attention_layernorm",
                                 {.width = options.mlp.width, .epsilon = options.attention.epsilon}) {
    if (options.experts.count > 0) {
      experts.emplace(*this, "mlp", options.experts);
    } else {
      mlp.emplace(*this, "mlp", options.mlp);
    }
  }

  nn::Residual<P, D> forward(const nn::Residual<P, D>& x, const data::BasicTokenBatch<D>& batch) const {
    const auto [stream, normalized] = nn::settle(input_layernorm, x);
    const auto [middle, middle_normalized] =
        post_attention_layernorm.add_and_normalize(stream, self_attn.forward(normalized, batch.time(), batch.document_starts));
    return {.stream = middle, .pending = feed_forward(middle_normalized, batch)};
  }
  // Continues the sequences of a cache by new tokens.
  nn::Residual<P, D> forward(const nn::Residual<P, D>& x, const nn::LayerCache<typename P::Compute, D>& cache) const {
    const auto [stream, normalized] = nn::settle(input_layernorm, x);
    const auto [middle, middle_normalized] =
        post_attention_layernorm.add_and_normalize(stream, self_attn.forward(normalized, cache));
    // Each token counts as its own sequence, so experts of limited capacity drop no token.
    return {.stream = middle, .pending = mlp ? mlp->forward(middle_normalized) : experts->forward(middle_normalized, 1)};
  }

  nn::RmsNorm<P, D> input_layernorm;
  nn::RotaryAttention<P, D> self_attn;
  nn::RmsNorm<P, D> post_attention_layernorm;
  std::optional<nn::GatedMlp<P, D>> mlp;              // exactly one of these two is set;
  std::optional<nn::MixtureOfExperts<P, D>> experts;  // both have the name "mlp"

 private:
  typename nn::Module<P, D>::Value feed_forward(const typename nn::Module<P, D>::Value& x,
                                                const data::BasicTokenBatch<D>& batch) const {
    return mlp ? mlp->forward(x) : experts->forward(x, batch.time(), batch.targets, batch.document_starts);
  }
};

// Names are those of Hugging Face's LlamaForCausalLM, but queries, keys and values are one layer, qkv_proj. On a tensor axis
// the ranks divide heads, hidden features and vocabulary. The list of layers is the embedding, the blocks and the output layer;
// without ModelContext::layer_costs the blocks are divided evenly over the stages.
template <typename P, typename D = Cpu>
class Llama : public nn::Staged<P, D, data::BasicTokenBatch<D>, nn::Residual<P, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicTokenBatch<D>;

  explicit Llama(const LlamaOptions& options, const ModelContext& context = {});

  const LlamaOptions& options() const { return options_; }

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
  struct Decoder : nn::Module<P, D> {
    Decoder(const nn::Module<P, D>& parent, const LlamaOptions& options);

    nn::Embedding<P, D> embed_tokens;
    nn::ModuleList<LlamaBlock<P, D>> layers;
    nn::RmsNorm<P, D> norm;
  };

  LlamaOptions options_;
  Decoder decoder_;
  nn::TokenLogits<P, D> lm_head_;
};

extern template class Llama<Float32, Cpu>;
extern template class Llama<MixedBfloat16, Cpu>;
extern template class Llama<MixedFloat16, Cpu>;
extern template class Llama<Float32, Cuda>;
extern template class Llama<MixedBfloat16, Cuda>;
extern template class Llama<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
