#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {

namespace {

struct Attention {
  static constexpr std::string_view name = "scaled_dot_product_attention";
  ops::AttentionOptions options;

  template <typename T, typename D, typename A = Accumulate<T>>
  void forward(const Tensor<T, D>& q, const Tensor<T, D>& kv, const Tensor<std::int32_t, D>& key_padding_mask,
               const Tensor<std::int32_t, D>& first_keys, Tensor<T, D>& out, Tensor<A, D>& exponentials) const {
    ops::scaled_dot_product_attention<T, D>({.options = without_idle_window(q, kv),
                                             .q = q,
                                             .kv = kv,
                                             .key_padding_mask = key_padding_mask,
                                             .first_keys = first_keys,
                                             .out = out,
                                             .exponentials = exponentials});
  }
  template <typename T, typename D, typename A = Accumulate<T>>
  void backward(const Tensor<T, D>& dout, const Tensor<T, D>& q, const Tensor<T, D>& kv,
                const Tensor<std::int32_t, D>& key_padding_mask, const Tensor<std::int32_t, D>& first_keys,
                const Tensor<T, D>& out, const Tensor<A, D>& exponentials, const Gradient<T, D>& dq,
                const Gradient<T, D>& dkv) const {
    Tensor<T, D> of_q(q.shape());
    // Rows of a cache that are not in use have no gradient.
    Tensor<T, D> of_kv = kv.defined() ? Tensor<T, D>::zeros(kv.shape()) : Tensor<T, D>();
    ops::scaled_dot_product_attention_backward<T, D>({.options = without_idle_window(q, kv),
                                                      .q = q,
                                                      .kv = kv,
                                                      .key_padding_mask = key_padding_mask,
                                                      .first_keys = first_keys,
                                                      .out = out,
                                                      .exponentials = exponentials,
                                                      .dout = dout,
                                                      .dq = of_q,
                                                      .dkv = of_kv});
    dq.give(std::move(of_q));
    dkv.give(std::move(of_kv));
  }
  void describe(Attributes& to) const {
    to["heads"] = std::int64_t{options.heads};
    to["kv_heads"] = std::int64_t{options.kv_heads};
    to["causal"] = std::int64_t{options.causal};
    to["window"] = options.window;
    to["scale"] = options.scale;
    to["keys"] = options.keys;
    to["value_size"] = options.value_size;
  }

 private:
  // A window that holds all keys hides none, and costs something.
  template <typename T, typename D>
  ops::AttentionOptions without_idle_window(const Tensor<T, D>& q, const Tensor<T, D>& kv) const {
    const std::int64_t keys = options.keys > 0 ? options.keys : kv.defined() ? kv.dim(1) : q.dim(1);
    ops::AttentionOptions needed = options;
    if (needed.window >= keys) needed.window = 0;
    return needed;
  }
};

struct Rotary {
  static constexpr std::string_view name = "rotary";
  ops::RotaryOptions options;

  void forward(const auto& x, const auto& document_starts, auto& y) const { ops::rotary(x, options, y, document_starts); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Tensor<std::int32_t, D>& document_starts, const Gradient<T, D>& dx) const {
    Tensor<T, D> contribution(dy.shape());
    ops::rotary_backward(dy, options, contribution, document_starts);
    dx.give(std::move(contribution));
  }
  void describe(Attributes& to) const {
    to["size"] = options.size;
    to["heads"] = options.heads;
    to["first_position"] = options.first_position;
    to["base"] = options.base;
    const ops::RotaryScaling& scaling = options.scaling;
    to["scaling"] = static_cast<std::int64_t>(scaling.kind);
    to["factor"] = scaling.factor;
    to["trained_positions"] = scaling.trained_positions;
    to["low_frequency"] = scaling.low_frequency;
    to["high_frequency"] = scaling.high_frequency;
    to["beta_fast"] = scaling.beta_fast;
    to["beta_slow"] = scaling.beta_slow;
    to["truncate"] = std::int64_t{scaling.truncate};
    to["attention_factor"] = scaling.attention_factor;
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> scaled_dot_product_attention(const Variable<T, D>& q, const Variable<T, D>& kv,
                                            const ops::AttentionOptions& options,
                                            const Tensor<std::int32_t, D>& key_padding_mask,
                                            const Tensor<std::int32_t, D>& first_keys) {
  const auto results = [&] {
    const Shape shape = ops::attention_shape(q.shape(), kv.shape(), options);
    return std::tuple(kept(Result<T, D>{shape}), internal(Result<Accumulate<T>, D>{{2, shape[0], options.heads, shape[1]}}));
  };
  return record(Attention{options}, results, kept(q), kept(optional(kv)), kept(optional(key_padding_mask)),
                kept(optional(first_keys)));
}

template <typename T, typename D>
Variable<T, D> rotary(const Variable<T, D>& x, const ops::RotaryOptions& options,
                      const Tensor<std::int32_t, D>& document_starts) {
  return record(Rotary{options}, Result<T, D>{x.shape()}, x, kept(optional(document_starts)));
}

#define TRIREME_INSTANTIATE(T)                                                                               \
  template Variable<T, TRIREME_DEVICE> rotary(const Variable<T, TRIREME_DEVICE>&, const ops::RotaryOptions&, \
                                              const Tensor<std::int32_t, TRIREME_DEVICE>&);                  \
  template Variable<T, TRIREME_DEVICE> scaled_dot_product_attention(                                         \
      const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&, const ops::AttentionOptions&,  \
      const Tensor<std::int32_t, TRIREME_DEVICE>&, const Tensor<std::int32_t, TRIREME_DEVICE>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
