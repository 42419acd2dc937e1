#pragma once

#include "ops/attention/attention_checks.hpp"

// The operations of ops/attention/attention.hpp for any device: Attention<D> does the work.
namespace trireme::ops {

template <typename D>
struct Attention {
  template <typename T>
  static void forward(const AttentionForward<T, D>& pass, const AttentionSizes& sizes);
  template <typename T>
  static void backward(const AttentionBackward<T, D>& pass, const AttentionSizes& sizes);
};

template <typename T, typename D>
void scaled_dot_product_attention(const AttentionForward<T, D>& pass) {
  Attention<D>::forward(pass, checked_attention_sizes(pass));
}

template <typename T, typename D>
void scaled_dot_product_attention_backward(const AttentionBackward<T, D>& pass) {
  const AttentionSizes sizes = checked_attention_sizes(pass);
  require_shape("attention", "dout", pass.dout, pass.out.shape());
  require_shape("attention", "dq", pass.dq, pass.q.shape());
  require_shape("attention", "dkv", pass.dkv.shape(), pass.kv.shape());  // both are undefined if packed
  Attention<D>::backward(pass, sizes);
}

}  // namespace trireme::ops
