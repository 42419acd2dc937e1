#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/ops/elementwise/rotary_scaling.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct RotaryAttentionOptions {
  std::int64_t width = 0;
  int heads = 1;
  int kv_heads = 0;            // 0: as many as heads; otherwise heads / kv_heads neighbouring heads share keys and values
  std::int64_t head_size = 0;  // 0: width / heads
  bool bias = false;           // of queries, keys and values
  bool output_bias = false;
  bool query_key_norm = false;  // RMS norms over the queries and keys of each head, before they are rotated, as in Qwen 3
  double epsilon = 1e-6;        // of these norms
  double rotary_base = 10000;
  ops::RotaryScaling rotary_scaling = {};
  std::int64_t window = 0;  // above 0: a query sees only keys that are fewer than `window` places away
  Initializer weight_initializer = Initializer::normal(0, 0.02);
};

// Causal self-attention with rotary positions (Su et al. 2021, arXiv 2104.09864) and grouped heads of keys and values (Ainslie
// et al. 2023, arXiv 2305.13245), as in Llama. Input and result have the shape [batch, time, width]; in a sequence-parallel
// model they are this rank's rows [rows, width]. qkv_proj [(heads + 2 * kv_heads) * head_size, width] projects to queries,
// keys and values, in this order. The ranks of a tensor axis divide the heads and the heads of keys and values.
template <typename P, typename D = Cpu>
class RotaryAttention : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  RotaryAttention(const Module<P, D>& parent, std::string_view name, const RotaryAttentionOptions& options)
      : Module<P, D>(parent, name),
        options_(checked(options)),
        qkv_proj(*this, "qkv_proj",
                 {.in = options.width,
                  .out = options_.head_size * (options_.heads + 2 * options_.kv_heads),
                  .bias = options.bias,
                  .split = TensorSplit::column,
                  .packed = {options_.heads * options_.head_size, options_.kv_heads * options_.head_size,
                             options_.kv_heads * options_.head_size},
                  .packed_names = {"q_proj", "k_proj", "v_proj"},
                  .weight_initializer = options.weight_initializer,
                  .bias_initializer = Initializer::constant(0)}),
        o_proj(*this, "o_proj",
               {.in = options_.heads * options_.head_size,
                .out = options.width,
                .bias = options.output_bias,
                .split = TensorSplit::row,
                .weight_initializer = options.weight_initializer,
                .bias_initializer = Initializer::constant(0)}) {
    if (options.query_key_norm) {
      q_norm = this->add_parameter("q_norm.weight", {options_.head_size}, Initializer::constant(1));
      k_norm = this->add_parameter("k_norm.weight", {options_.head_size}, Initializer::constant(1));
    }
    const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
    heads_ = options_.heads / ranks;
    kv_heads_ = options_.kv_heads / ranks;
  }

  // time: length of a sequence. document_starts [batch, time]: where each token's document starts in its sequence; the token
  // sees no further back, and positions count from there. May be undefined.
  Variable<T, D> forward(const Variable<T, D>& x, std::int64_t time,
                         const Tensor<std::int32_t, D>& document_starts = {}) const {
    return this->named([&] {
      require(time > 0, "{}: a sequence has at least one token", this->name());
      const auto qkv = rotary(projected(x, time), rotary_options(), document_starts);
      return o_proj.forward(scaled_dot_product_attention(
          qkv, {}, {.heads = heads_, .kv_heads = kv_heads_, .causal = true, .window = options_.window}, {}, document_starts));
    });
  }

  // Continues the sequences of a cache by new tokens: [1, rows, width] -> the same shape. Call it without a tape.
  Variable<T, D> forward(const Variable<T, D>& x, const LayerCache<T, D>& cache) const {
    const std::int64_t ranks = this->sequence_parallel() ? this->tensor_axis()->size() : 1;
    return o_proj.forward(
        cache.attend(projected(x, x.shape().rows() * ranks).value(),
                     {.heads = heads_, .kv_heads = kv_heads_, .window = options_.window, .rotary = rotary_options()}));
  }

 private:
  RotaryAttentionOptions checked(RotaryAttentionOptions options) const {
    require(options.heads > 0 && options.kv_heads >= 0 && options.head_size >= 0 && options.window >= 0,
            "{}: heads is {}, kv_heads {}, head_size {} and window {}, but heads must be above 0 and the others 0 or more",
            this->name(), options.heads, options.kv_heads, options.head_size, options.window);
    if (options.kv_heads == 0) options.kv_heads = options.heads;
    require(options.heads % options.kv_heads == 0, "{}: {} heads of keys and values do not divide {} heads", this->name(),
            options.kv_heads, options.heads);
    if (options.head_size == 0) {
      require(options.width % options.heads == 0, "{}: {} heads do not divide a width of {}, and no head_size is given",
              this->name(), options.heads, options.width);
      options.head_size = options.width / options.heads;
    }
    require(options.head_size % 2 == 0, "{}: heads of {} elements can't be rotated; the number must be even", this->name(),
            options.head_size);
    const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
    require(options.kv_heads % ranks == 0,
            "{}: {} ranks of a tensor axis can't divide {} heads of keys and values; use a number that divides them",
            this->name(), ranks, options.kv_heads);
    return options;
  }

  std::int64_t q_width() const { return heads_ * options_.head_size; }
  std::int64_t kv_width() const { return kv_heads_ * options_.head_size; }

  ops::RotaryOptions rotary_options() const {
    return {.size = options_.head_size,
            .heads = heads_ + kv_heads_,
            .base = options_.rotary_base,
            .scaling = options_.rotary_scaling};
  }

  // Queries, keys and values of all rows, not yet rotated.
  Variable<T, D> projected(const Variable<T, D>& x, std::int64_t time) const {
    const auto qkv = qkv_proj.forward(x);
    const auto all = this->sequence_parallel() ? reshape(qkv, {qkv.shape()[0] / time, time, qkv.shape().back()}) : qkv;
    return options_.query_key_norm ? normalized(all) : all;
  }

  Variable<T, D> normalized(const Variable<T, D>& qkv) const {
    return cat(
        {norm_of_heads(narrow(qkv, 2, 0, q_width()), q_norm), norm_of_heads(narrow(qkv, 2, q_width(), kv_width()), k_norm),
         narrow(qkv, 2, q_width() + kv_width(), kv_width())},
        2);
  }

  // Every rank of a tensor axis holds the whole weight and uses it for its own heads.
  Variable<T, D> norm_of_heads(const Variable<T, D>& x, const Parameter<T, D, M>& weight) const {
    Variable<M, D> shared = weight.master();
    if (this->tensor_axis() != nullptr && shared.slot() != nullptr) shared = sum_gradient(shared, *this->tensor_axis());
    const auto heads = reshape(x, {x.shape()[0], x.shape()[1], x.shape()[2] / options_.head_size, options_.head_size});
    return reshape(rms_norm<T, D>(cast<M>(heads), shared, options_.epsilon), x.shape());
  }

  RotaryAttentionOptions options_;  // with the defaults filled in
  int heads_ = 0;                   // of this rank
  int kv_heads_ = 0;

 public:
  Linear<P, D> qkv_proj;
  Linear<P, D> o_proj;
  Parameter<T, D, M> q_norm;
  Parameter<T, D, M> k_norm;
};

}  // namespace nn
}  // namespace trireme
