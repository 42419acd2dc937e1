#pragma once

#include <algorithm>

#include "trireme/core/export.hpp"
#include "trireme/nn/layers.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct MultiheadAttentionOptions {
  std::int64_t embed_dim = 0;
  int num_heads = 1;
  int num_kv_heads = 0;  // 0: as many as heads; else heads share keys and values
  bool bias = true;
  bool causal = false;
  double rotary_base = 0;  // above 0: queries and keys get rotary positions
};

// Multi-head attention (Vaswani et al. 2017, arXiv 1706.03762) of a sequence to itself.
// [batch, time, embed_dim] -> the same; in a sequence-parallel model this rank's rows of that. The ranks of a tensor axis
// divide the heads and the heads of keys and values. in_proj [embed_dim + 2 * width of the kv heads, embed_dim] holds the
// projections of queries, keys and values, as in torch.nn.MultiheadAttention.
template <typename P, typename D = Cpu>
class MultiheadAttention : public Module<P, D> {
 public:
  using T = typename P::Compute;

  MultiheadAttention(const Module<P, D>& parent, std::string_view name, const MultiheadAttentionOptions& options)
      : Module<P, D>(parent, name),
        in_proj(*this, "in_proj",
                {.in = options.embed_dim,
                 .out = options.embed_dim + 2 * kv_width(options),
                 .bias = options.bias,
                 .split = TensorSplit::column,
                 .packed = {options.embed_dim, kv_width(options), kv_width(options)}}),
        out_proj(*this, "out_proj",
                 {.in = options.embed_dim, .out = options.embed_dim, .bias = options.bias, .split = TensorSplit::row}),
        options_(options) {
    require(options.num_heads > 0 && options.embed_dim % options.num_heads == 0, "{}: {} heads do not divide a width of {}",
            this->name(), options.num_heads, options.embed_dim);
    const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
    require(options.num_heads % ranks == 0 && kv_heads(options) % ranks == 0,
            "{}: {} ranks of a tensor axis can't divide {} heads and {} of keys and values; a number that divides both can",
            this->name(), ranks, options.num_heads, kv_heads(options));
    heads_ = options.num_heads / ranks;
    kv_heads_ = kv_heads(options) / ranks;
  }

  // key_padding_mask [batch, time], not 0 where a key is padding; may be undefined. time: of a sequence, for sequence-parallel
  // models.
  Variable<T, D> forward(const Variable<T, D>& x, const Tensor<std::int32_t, D>& key_padding_mask = {},
                         std::int64_t time = 0) const {
    auto qkv = in_proj.forward(x);
    if (this->sequence_parallel()) {
      require(time > 0, "{}: a sequence-parallel model has to give the length of a sequence", this->name());
      qkv = reshape(qkv, {qkv.shape()[0] / time, time, qkv.shape().back()});
    }
    if (options_.rotary_base > 0) {
      qkv = rotary(qkv, {.size = head_size(options_), .heads = heads_ + kv_heads_, .base = options_.rotary_base});
    }
    const ops::AttentionOptions attention{.heads = heads_, .kv_heads = kv_heads_, .causal = options_.causal};
    return out_proj.forward(scaled_dot_product_attention(qkv, {}, attention, key_padding_mask));
  }

  Linear<P, D> in_proj;
  Linear<P, D> out_proj;

 private:
  static int kv_heads(const MultiheadAttentionOptions& options) {
    return options.num_kv_heads == 0 ? options.num_heads : options.num_kv_heads;
  }
  static std::int64_t head_size(const MultiheadAttentionOptions& options) {
    return options.embed_dim / std::max(options.num_heads, 1);
  }

  static std::int64_t kv_width(const MultiheadAttentionOptions& options) { return kv_heads(options) * head_size(options); }

  MultiheadAttentionOptions options_;
  int heads_ = 0;  // of this rank
  int kv_heads_ = 0;
};

}  // namespace nn
}  // namespace trireme
