#include "trireme/autograd/operations/attention.hpp"

#include "precision/instantiate.hpp"
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
    // Unused rows of a cache get a gradient of 0.
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
  // Drops a window that covers all keys: it hides none, but costs time.
  template <typename T, typename D>
  ops::AttentionOptions without_idle_window(const Tensor<T, D>& q, const Tensor<T, D>& kv) const {
    const std::int64_t keys = options.keys > 0 ? options.keys : kv.defined() ? kv.dim(1) : q.dim(1);
    ops::AttentionOptions needed = options;
    if (needed.window >= keys) needed.window = 0;
    return needed;
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

TRIREME_INSTANTIATE(FLOATS, scaled_dot_product_attention, TRIREME_DEVICE)

}  // namespace trireme
