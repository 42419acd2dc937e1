#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {

template <typename T, typename D>
Variable<T, D> scaled_dot_product_attention(const Variable<T, D>& q, const Variable<T, D>& kv,
                                            const ops::AttentionOptions& options, const Tensor<std::int32_t, D>& hidden_keys) {
  require_operands("scaled_dot_product_attention", q, optional(kv), optional(hidden_keys));
  const Shape shape = ops::attention_shape(q.shape(), kv.shape(), options);
  const ops::AttentionForward<T, D> pass{.options = options,
                                         .q = q.value(),
                                         .kv = kv.value(),
                                         .hidden_keys = hidden_keys,
                                         .out = Tensor<T, D>(shape),
                                         .log_sum_exp = Tensor<Accumulate<T>, D>({shape[0], options.heads, shape[1]})};
  ops::scaled_dot_product_attention(pass);
  return record("scaled_dot_product_attention", pass.out, {q.slot(), kv.slot()},
                [pass, dq = q.gradient(), dkv = kv.gradient()](const Tensor<T, D>& dout) {
                  Tensor<T, D> of_q(pass.q.shape());
                  // Rows of a cache that are not in use have no gradient.
                  Tensor<T, D> of_kv = pass.kv.defined() ? Tensor<T, D>::zeros(pass.kv.shape()) : Tensor<T, D>();
                  ops::scaled_dot_product_attention_backward<T, D>({.options = pass.options,
                                                                    .q = pass.q,
                                                                    .kv = pass.kv,
                                                                    .hidden_keys = pass.hidden_keys,
                                                                    .out = pass.out,
                                                                    .log_sum_exp = pass.log_sum_exp,
                                                                    .dout = dout,
                                                                    .dq = of_q,
                                                                    .dkv = of_kv});
                  dq.give(std::move(of_q));
                  dkv.give(std::move(of_kv));
                });
}

template <typename T, typename D>
Variable<T, D> rotary(const Variable<T, D>& x, const ops::RotaryOptions& options) {
  require_operands("rotary", x);
  Tensor<T, D> y(x.shape());
  ops::rotary(x.value(), options, y);
  return record("rotary", std::move(y), {x.slot()}, [options, dx = x.gradient()](const Tensor<T, D>& dy) {
    Tensor<T, D> contribution(dy.shape());
    ops::rotary_backward(dy, options, contribution);
    dx.give(std::move(contribution));
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                \
  template Variable<T, TRIREME_DEVICE> rotary(const Variable<T, TRIREME_DEVICE>&, const ops::RotaryOptions&); \
  template Variable<T, TRIREME_DEVICE> scaled_dot_product_attention(                                          \
      const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&, const ops::AttentionOptions&,   \
      const Tensor<std::int32_t, TRIREME_DEVICE>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
