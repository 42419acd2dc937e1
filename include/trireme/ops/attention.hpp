#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// Causal self-attention, scale 1 / sqrt(head size), on packed projections, in blocks of queries: no time x time matrix
// is ever held and the masked half is skipped (Dao et al. 2022, arXiv 2205.14135).
// qkv: [batch, time, 3 * width], the queries of all heads, then keys, then values; out: [batch, time, width];
// log_sum_exp: [batch, heads, time], kept for the backward pass. width = heads * head size.
// bfloat16 and float16 are computed in float.
template <typename T, typename D>
void causal_attention(const Tensor<T, D>& qkv, int heads, Tensor<T, D>& out, Tensor<Accumulate<T>, D>& log_sum_exp);

// dqkv: [batch, time, 3 * width], overwritten.
template <typename T, typename D>
void causal_attention_backward(const Tensor<T, D>& qkv, int heads, const Tensor<T, D>& out,
                               const Tensor<Accumulate<T>, D>& log_sum_exp, const Tensor<T, D>& dout, Tensor<T, D>& dqkv);

}  // namespace trireme::ops
