#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/masked_attention.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/layers/layers.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct MultiheadAttentionOptions {
  std::int64_t embed_dim = 0;
  int num_heads = 1;
  int num_kv_heads = 0;  // 0: as many as heads; otherwise heads share keys and values
  bool bias = true;
  bool causal = false;
  double rotary_base = 0;  // above 0: queries and keys get rotary positions
  // Above 0: a query sees only keys that are fewer than `window` places away. Without `causal`, or with dropout, attention is
  // computed by masked_attention(), which is slower.
  std::int64_t window = 0;
  double dropout = 0;                                  // of attention weights, in training; the same on any number of ranks
  std::optional<Initializer> weight_initializer = {};  // not given: as nn::Linear; if given, biases are 0
};

// Multi-head attention (Vaswani et al. 2017, arXiv 1706.03762) of a sequence to itself or to another sequence. Input and
// result have the shape [batch, time, embed_dim]; in a sequence-parallel model they are this rank's rows [rows, embed_dim].
// The ranks of a tensor axis divide the heads and the heads of keys and values. in_proj_weight [embed_dim + 2 * kv_heads *
// embed_dim / num_heads, embed_dim] and in_proj_bias hold the projections of queries, keys and values, and have the names of
// torch.nn.MultiheadAttention.
template <typename P, typename D = Cpu>
class MultiheadAttention : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  MultiheadAttention(const Module<P, D>& parent, std::string_view name, const MultiheadAttentionOptions& options)
      : Module<P, D>(parent, name),
        in_proj_weight(add_projections("in_proj_weight", options, {projections(options), options.embed_dim})),
        in_proj_bias(options.bias ? add_projections("in_proj_bias", options, {projections(options)}) : Parameter<T, D, M>()),
        out_proj(*this, "out_proj",
                 {.in = options.embed_dim,
                  .out = options.embed_dim,
                  .bias = options.bias,
                  .split = TensorSplit::row,
                  .weight_initializer = options.weight_initializer,
                  .bias_initializer = options.weight_initializer ? std::optional(Initializer::constant(0)) : std::nullopt}),
        options_(options) {
    require(options.num_heads > 0 && options.embed_dim % options.num_heads == 0, "{}: {} heads do not divide a width of {}",
            this->name(), options.num_heads, options.embed_dim);
    const int ranks = this->tensor_axis() == nullptr ? 1 : this->tensor_axis()->size();
    require(options.num_heads % ranks == 0 && kv_heads(options) % ranks == 0,
            "{}: {} ranks of a tensor axis can't divide {} heads and {} of keys and values; use a number that divides both",
            this->name(), ranks, options.num_heads, kv_heads(options));
    require(options.window >= 0 && options.dropout >= 0 && options.dropout < 1,
            "{}: the window is {} and dropout {}, but must be at least 0 and lie in [0, 1)", this->name(), options.window,
            options.dropout);
    heads_ = options.num_heads / ranks;
    kv_heads_ = kv_heads(options) / ranks;
    if (ranks > 1) first_head_ = this->tensor_axis()->rank() * heads_;
  }

  // key_padding_mask [batch, time], not 0 where a key is padding; may be undefined. time: length of a sequence, required in
  // sequence-parallel models.
  Variable<T, D> forward(const Variable<T, D>& x, const Tensor<std::int32_t, D>& key_padding_mask = {},
                         std::int64_t time = 0) const {
    return this->named([&] {
      auto qkv = projected(x, in_proj_weight.variable(), in_proj_bias.master());
      if (this->sequence_parallel()) {
        require(time > 0, "{}: a sequence-parallel model has to give the length of a sequence", this->name());
        qkv = reshape(qkv, {qkv.shape()[0] / time, time, qkv.shape().back()});
      }
      if (options_.rotary_base > 0) {
        qkv = rotary(qkv, {.size = head_size(options_), .heads = heads_ + kv_heads_, .base = options_.rotary_base});
      }
      if ((options_.window > 0 && !options_.causal) || drops()) {
        const std::int64_t q_width = heads_ * head_size(options_), kv_width = kv_heads_ * head_size(options_);
        const AttentionMask<T, D> mask{
            .key_padding_mask = key_padding_mask, .causal = options_.causal, .window = options_.window};
        return out_proj.forward(masked(narrow(qkv, 2, 0, q_width), narrow(qkv, 2, q_width, kv_width),
                                       narrow(qkv, 2, q_width + kv_width, kv_width), mask));
      }
      const ops::AttentionOptions attention{
          .heads = heads_, .kv_heads = kv_heads_, .causal = options_.causal, .window = options_.window};
      return out_proj.forward(scaled_dot_product_attention(qkv, {}, attention, key_padding_mask));
    });
  }

  // Attention of queries from x [batch, queries, embed_dim] to keys and values from `memory` [batch, keys, embed_dim]. This is
  // cross-attention or, with memory = x, self-attention with a mask or a bias. With padding masks, causal masks and a causal
  // window, attend() is as fast as forward(x). Other masks, and any dropout, are computed by masked_attention(). A window
  // extends to both sides of a query, or only backwards if attention is causal. Not for sequence-parallel models.
  Variable<T, D> attend(const Variable<T, D>& x, const Variable<T, D>& memory, const AttentionMask<T, D>& mask = {}) const {
    return this->named([&] {
      this->require_all_rows("attention with a mask or a memory");
      const std::int64_t q_width = heads_ * head_size(options_);
      const std::int64_t kv_width = kv_heads_ * head_size(options_);
      Variable<T, D> q = project(x, 0, q_width);
      Variable<T, D> kv = project(memory, q_width, 2 * kv_width);
      if (options_.rotary_base > 0) {
        q = rotary(q, {.size = head_size(options_), .heads = heads_, .base = options_.rotary_base});
        kv = rotary(kv, {.size = head_size(options_), .heads = kv_heads_, .base = options_.rotary_base});
      }
      AttentionMask<T, D> all = mask;
      all.causal = mask.causal || options_.causal;
      all.window = mask.window == 0 ? options_.window : mask.window;
      const bool is_plain = !all.bias.value().defined() && !all.mask.defined() && (all.window == 0 || all.causal) && !drops();
      if (is_plain) {
        const ops::AttentionOptions attention{
            .heads = heads_, .kv_heads = kv_heads_, .causal = all.causal, .window = all.window};
        return out_proj.forward(scaled_dot_product_attention(q, kv, attention, all.key_padding_mask));
      }
      return out_proj.forward(masked(q, narrow(kv, 2, 0, kv_width), narrow(kv, 2, kv_width, kv_width), all));
    });
  }

  Parameter<T, D, M> in_proj_weight;
  Parameter<T, D, M> in_proj_bias;
  Linear<P, D> out_proj;

 private:
  // The projections of queries, keys and values. The ranks of a tensor axis divide each of the three.
  Parameter<T, D, M> add_projections(std::string_view name, const MultiheadAttentionOptions& options, const Shape& shape) {
    require(options.embed_dim > 0 && options.num_kv_heads >= 0,
            "{}: attention needs embed_dim above 0 and num_kv_heads 0 or more, got {} and {}", this->name(), options.embed_dim,
            options.num_kv_heads);
    Placement placement{.shape = shape};
    if (const Collectives* axis = this->tensor_axis()) {
      placement.dim = 0;
      std::int64_t first = 0;
      for (const std::int64_t count : {options.embed_dim, kv_width(options), kv_width(options)}) {
        const Range part = even_part(count, *axis);
        placement.ranges.push_back({first + part.begin, first + part.end});
        first += count;
      }
    }
    const Initializer given = shape.size() == 1 ? Initializer::constant(0) : options.weight_initializer.value_or(Initializer());
    return this->add_parameter(name, placement, options.weight_initializer ? given : uniform_by_fan_in(options.embed_dim));
  }

  bool drops() const { return options_.dropout > 0 && this->training() && Tape::current() != nullptr; }

  // q, k, v [batch, time, heads of this rank * size]
  Variable<T, D> masked(const Variable<T, D>& q, const Variable<T, D>& k, const Variable<T, D>& v,
                        const AttentionMask<T, D>& mask) const {
    const MaskedAttentionOptions options{.dropout = drops() ? options_.dropout : 0,
                                         .stream = this->name(),
                                         .all_heads = options_.num_heads,
                                         .first_head = first_head_};
    return join_heads(
        masked_attention(split_heads(q, heads_), split_heads(k, kv_heads_), split_heads(v, kv_heads_), mask, options));
  }

  // Multiplies x by `count` rows of in_proj_weight's local part, from row `first` on.
  Variable<T, D> project(const Variable<T, D>& x, std::int64_t first, std::int64_t count) const {
    const auto weight = computed_weight<T>(narrow(in_proj_weight.master(), 0, first, count));
    const auto bias = options_.bias ? narrow(in_proj_bias.master(), 0, first, count) : Variable<M, D>();
    return projected(x, weight, bias);
  }

  Variable<T, D> projected(const Variable<T, D>& x, const Variable<T, D, M>& weight, const Variable<M, D>& bias) const {
    if (this->tensor_axis() == nullptr) return linear(x, weight, bias);
    return column_parallel_linear(x, weight, bias, *this->tensor_axis(), this->sequence_parallel());
  }

  static int kv_heads(const MultiheadAttentionOptions& options) {
    return options.num_kv_heads == 0 ? options.num_heads : options.num_kv_heads;
  }
  static std::int64_t head_size(const MultiheadAttentionOptions& options) {
    return options.embed_dim / std::max(options.num_heads, 1);
  }

  static std::int64_t projections(const MultiheadAttentionOptions& options) {
    return options.embed_dim + 2 * kv_width(options);
  }
  static std::int64_t kv_width(const MultiheadAttentionOptions& options) { return kv_heads(options) * head_size(options); }

  MultiheadAttentionOptions options_;
  int heads_ = 0;  // of this rank
  int kv_heads_ = 0;
  int first_head_ = 0;
};

}  // namespace nn
}  // namespace trireme
