#pragma once

#include <cmath>
#include <utility>

#include "trireme/autograd/composed/masked_attention.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"
#include "trireme/nn/layers/layers.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct TransformerOptions {
  int heads = 1;
  std::int64_t width = 0;
  double dropout = 0;
  // Dropout of attention weights in training: GPT-2's attn_pdrop. Uses masked_attention(), which is slower and holds matrices
  // of time x time.
  double attention_dropout = 0;
  double weight_deviation = 0.02;           // standard deviation of initial weights
  double projection_deviation = 0.02;       // of initial weights of the layers that write into the residual stream
  Float8Scaling fp8 = Float8Scaling::none;  // of the linear layers
};

// Causal multi-head self-attention, with the names of GPT-2. Input and result have the shape [batch, time, width]; in a
// sequence-parallel model they are this rank's rows [batch * time / ranks, width]. The ranks of a tensor axis divide the
// heads.
template <typename P, typename D = Cpu>
class CausalSelfAttention : public Module<P, D> {
 public:
  using T = typename P::Compute;

  CausalSelfAttention(const Module<P, D>& parent, std::string_view name, const TransformerOptions& options)
      : Module<P, D>(parent, name),
        c_attn(*this, "c_attn",
               {.in = options.width,
                .out = 3 * options.width,
                .split = TensorSplit::column,
                .fp8 = options.fp8,
                .packed = {options.width, options.width, options.width},
                .weight_initializer = Initializer::normal(0, options.weight_deviation),
                .bias_initializer = Initializer::constant(0)}),
        c_proj(*this, "c_proj",
               {.in = options.width,
                .out = options.width,
                .split = TensorSplit::row,
                .fp8 = options.fp8,
                .weight_initializer = Initializer::normal(0, options.projection_deviation),
                .bias_initializer = Initializer::constant(0)}),
        resid_dropout(*this, "resid_dropout", options.dropout),
        options_(options) {
    require(options.attention_dropout >= 0 && options.attention_dropout < 1, "{}: attention_dropout {} does not lie in [0, 1)",
            this->name(), options.attention_dropout);
    require(options.heads > 0 && options.width % options.heads == 0, "{}: {} heads do not divide a width of {}", this->name(),
            options.heads, options.width);
    const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
    require(options.heads % ranks == 0, "{}: {} ranks of a tensor axis can't divide {} heads; use a number that divides them",
            this->name(), ranks, options.heads);
    heads_ = options.heads / ranks;
  }

  // document_starts [batch, time]: where each token's document starts in its sequence; the token sees no further back. May be
  // undefined.
  Variable<T, D> forward(const Variable<T, D>& x, std::int64_t time,
                         const Tensor<std::int32_t, D>& document_starts = {}) const {
    return this->named([&] {
      auto qkv = c_attn.forward(x);
      require(time > 0, "{}: a sequence has at least one token", this->name());
      if (this->sequence_parallel()) qkv = reshape(qkv, {qkv.shape()[0] / time, time, qkv.shape().back()});
      const bool drops = options_.attention_dropout > 0 && this->training() && Tape::current() != nullptr;
      const auto attended = drops
                                ? dropped(qkv, document_starts)
                                : scaled_dot_product_attention(qkv, {}, {.heads = heads_, .causal = true}, {}, document_starts);
      return resid_dropout.forward(c_proj.forward(attended));
    });
  }

  // Continues the sequences of a cache by new tokens: [1, rows, width] -> the same shape. Call it without a tape.
  Variable<T, D> forward(const Variable<T, D>& x, const LayerCache<T, D>& cache) const {
    return c_proj.forward(cache.attend(c_attn.forward(x).value(), {.heads = heads_, .kv_heads = heads_}));
  }

  Linear<P, D> c_attn;  // queries, keys, values: [3 * width, width]
  Linear<P, D> c_proj;
  Dropout<P, D> resid_dropout;

 private:
  Variable<T, D> dropped(const Variable<T, D>& qkv, const Tensor<std::int32_t, D>& document_starts) const {
    const std::int64_t width = qkv.shape().back() / 3;
    const auto part = [&](std::int64_t number) { return split_heads(narrow(qkv, 2, number * width, width), heads_); };
    const std::int64_t first_head = this->tensor_axis() == nullptr ? 0 : this->tensor_axis()->rank() * heads_;
    AttentionMask<T, D> mask{.causal = true};
    if (document_starts.defined()) {
      const std::int64_t time = qkv.shape()[1];
      const auto keys = arange<std::int32_t, D>(static_cast<double>(time));
      mask.mask = ge(keys, document_starts.reshape({document_starts.dim(0), 1, time, 1}));
    }
    return join_heads(masked_attention(part(0), part(1), part(2), mask,
                                       {.dropout = options_.attention_dropout,
                                        .stream = this->name(),
                                        .all_heads = options_.heads,
                                        .first_head = first_head}));
  }

  TransformerOptions options_;
  int heads_ = 0;  // of this rank
};

// An MLP: linear to 4 * width, GELU, linear to width. Shapes are as in CausalSelfAttention. The ranks of a tensor axis divide
// the 4 * width features.
template <typename P, typename D = Cpu>
class TransformerMlp : public Module<P, D> {
 public:
  using T = typename P::Compute;

  TransformerMlp(const Module<P, D>& parent, std::string_view name, const TransformerOptions& options)
      : Module<P, D>(parent, name),
        c_fc(*this, "c_fc",
             {.in = options.width,
              .out = 4 * options.width,
              .split = TensorSplit::column,
              .fp8 = options.fp8,
              .weight_initializer = Initializer::normal(0, options.weight_deviation),
              .bias_initializer = Initializer::constant(0)}),
        c_proj(*this, "c_proj",
               {.in = 4 * options.width,
                .out = options.width,
                .split = TensorSplit::row,
                .fp8 = options.fp8,
                .weight_initializer = Initializer::normal(0, options.projection_deviation),
                .bias_initializer = Initializer::constant(0)}),
        dropout(*this, "dropout", options.dropout) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] {
      return dropout.forward(c_fc.is_plain() && c_proj.is_plain() ? fused(x) : c_proj.forward(gelu(c_fc.forward(x))));
    });
  }

  Linear<P, D> c_fc;
  Linear<P, D> c_proj;
  Dropout<P, D> dropout;

 private:
  Variable<T, D> fused(const Variable<T, D>& x) const {
    return linear_gelu_linear(x, c_fc.weight.variable(), c_fc.bias.master(), c_proj.weight.variable(), c_proj.bias.master());
  }
};

// A pre-norm block (Radford et al. 2019, GPT-2), which takes and returns a residual stream [batch, time, width]; in a
// sequence-parallel model the stream is this rank's rows [rows, width]. `time`: length of a sequence. forward(x, batch) takes
// `time`, and document_starts if there are any, from the batch.
template <typename P, typename D = Cpu>
class TransformerBlock : public Module<P, D> {
 public:
  TransformerBlock(const Module<P, D>& parent, std::string_view name, const TransformerOptions& options)
      : Module<P, D>(parent, name),
        ln_1(*this, "ln_1", {.width = options.width}),
        attn(*this, "attn", options),
        ln_2(*this, "ln_2", {.width = options.width}),
        mlp(*this, "mlp", options) {}

  Residual<P, D> forward(const Residual<P, D>& x, std::int64_t time,
                         const Tensor<std::int32_t, D>& document_starts = {}) const {
    const auto [stream, normalized] = settle(ln_1, x);
    const auto [middle, middle_normalized] = ln_2.add_and_normalize(stream, attn.forward(normalized, time, document_starts));
    return {.stream = middle, .pending = mlp.forward(middle_normalized)};
  }
  // Continues the sequences of a cache by new tokens.
  Residual<P, D> forward(const Residual<P, D>& x, const LayerCache<typename P::Compute, D>& cache) const {
    const auto [stream, normalized] = settle(ln_1, x);
    const auto [middle, middle_normalized] = ln_2.add_and_normalize(stream, attn.forward(normalized, cache));
    return {.stream = middle, .pending = mlp.forward(middle_normalized)};
  }
  template <typename Batch>
  requires requires(const Batch& batch) { batch.time(); }
  Residual<P, D> forward(const Residual<P, D>& x, const Batch& batch) const {
    if constexpr (requires { batch.document_starts; }) {
      return forward(x, batch.time(), batch.document_starts);
    } else {
      return forward(x, batch.time());
    }
  }

  LayerNorm<P, D> ln_1;
  CausalSelfAttention<P, D> attn;
  LayerNorm<P, D> ln_2;
  TransformerMlp<P, D> mlp;
};

}  // namespace nn
}  // namespace trireme
