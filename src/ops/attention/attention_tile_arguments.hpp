#pragma once

#include "ops/attention/attention_body.hpp"
#include "ops/attention/attention_checks.hpp"

// The arguments of the kernels of attention_body.hpp, for tensors of any device.
namespace trireme::ops {

// Pointers to the first row of the first head.
template <typename T>
struct AttentionPointers {
  T* q;
  T* k;
  T* v;
};
template <typename T, typename D>
AttentionPointers<T> attention_pointers(const Tensor<T, D>& q, const Tensor<T, D>& kv, const AttentionSizes& sizes) {
  T* const keys = sizes.packed ? q.data() + sizes.width() : kv.data();
  return {q.data(), keys, keys + sizes.kv_width()};
}

template <typename T, typename Pass>
AttentionInput<T> attention_input(const Pass& pass, const AttentionSizes& sizes) {
  const auto [q, k, v] = attention_pointers(pass.q, pass.kv, sizes);
  return {.sizes = sizes,
          .q = q,
          .k = k,
          .v = v,
          .hidden = pass.key_padding_mask.defined() ? pass.key_padding_mask.data() : nullptr,
          .first_keys = pass.first_keys.defined() ? pass.first_keys.data() : nullptr,
          .window = pass.options.window,
          .scale = static_cast<Accumulate<T>>(attention_scale(pass.options, sizes)),
          .causal = pass.options.causal};
}

template <typename T, typename D>
AttentionForwardTile<T> attention_forward_tile(const AttentionForward<T, D>& pass, const AttentionSizes& sizes) {
  return {.in = attention_input<T>(pass, sizes), .out = pass.out.data(), .exponentials = pass.exponentials.data()};
}

template <typename T>
struct AttentionBackwardTiles {
  AttentionQueryGradientTile<T> queries;
  AttentionKeyGradientTile<T> keys;  // runs after `queries`
};
template <typename T, typename D>
AttentionBackwardTiles<T> attention_backward_tiles(const AttentionBackward<T, D>& pass, const AttentionSizes& sizes,
                                                   const Tensor<Accumulate<T>, D>& delta) {
  const AttentionBackwardInput<T> in{.forward = attention_input<T>(pass, sizes),
                                     .out = pass.out.data(),
                                     .dout = pass.dout.data(),
                                     .exponentials = pass.exponentials.data(),
                                     .delta = delta.data()};
  const auto [dq, dk, dv] = attention_pointers(pass.dq, pass.dkv, sizes);
  return {.queries = {.in = in, .dq = dq}, .keys = {.in = in, .dk = dk, .dv = dv}};
}

}  // namespace trireme::ops
