#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct AttentionOptions {
  int heads = 1;
  int kv_heads = 0;     // 0: as many as heads; otherwise heads / kv_heads neighbouring heads share keys and values
                        // (Ainslie et al. 2023, arXiv 2305.13245)
  bool causal = false;  // query i sees the keys up to i + keys - queries
  // Above 0, with causal: a query sees only the last `window` of these keys (Beltagy et al. 2020, arXiv 2004.05150).
  std::int64_t window = 0;
  double scale = 0;             // factor of the products of queries and keys; 0: 1 / sqrt(head size)
  std::int64_t keys = 0;        // rows of kv in use, if kv is a larger cache; 0: all
  std::int64_t value_size = 0;  // size of a head's values and output; 0: the size of its queries; must be 0 on a GPU
};

// Computes softmax(scale * q k^T) v of each head in blocks of queries (Dao et al. 2022, arXiv 2205.14135). The matrix of
// queries x keys is never stored, and keys that `causal` hides are skipped. bfloat16 and float16 are computed in float.
//   q: [batch, queries, heads * size]   kv: [batch, keys, kv_heads * (size + value_size)], all keys, then all values
// or, for self-attention, packed: q: [batch, time, heads * size + kv_heads * (size + value_size)] and kv undefined. There may
// be more or fewer keys than queries (cross-attention).
//   out: [batch, queries, heads * value_size]
//   exponentials: [2, batch, heads, queries], kept for the backward pass: a number for each query, and the sum of
//     exp(scale * score - number) over the query's keys. The number is the largest scale * score, or the log-sum-exp if cuDNN
//     is used
// key_padding_mask: [batch, keys], not 0 where a key is padding; may be undefined. A query gets zeros if it sees no key, or if
// all its scores are -infinity.
// first_keys: [batch, queries], the first key that each query sees; at least 0, and not decreasing from query to query; may be
// undefined. In a row of several documents, a query's first key is the start of its document. Keys that first_keys, the window
// or causal hide from a whole block of queries cost nothing.
// On a GPU, cuDNN computes bfloat16 and float16 if it has a plan; the first call with new shapes makes the plan. The last bits
// of cuDNN's dq may differ from run to run.
template <typename T, typename D>
struct AttentionForward {
  AttentionOptions options = {};
  Tensor<T, D> q = {};
  Tensor<T, D> kv = {};
  Tensor<std::int32_t, D> key_padding_mask = {};
  Tensor<std::int32_t, D> first_keys = {};
  Tensor<T, D> out = {};                       // out
  Tensor<Accumulate<T>, D> exponentials = {};  // out
};
template <typename T, typename D>
TRIREME_EXPORT void scaled_dot_product_attention(const AttentionForward<T, D>& pass);

// dq and dkv are overwritten; they have the shapes of q and kv. Rows of dkv that are not in use stay unchanged.
template <typename T, typename D>
struct AttentionBackward {
  AttentionOptions options = {};
  Tensor<T, D> q = {};
  Tensor<T, D> kv = {};
  Tensor<std::int32_t, D> key_padding_mask = {};
  Tensor<std::int32_t, D> first_keys = {};
  Tensor<T, D> out = {};
  Tensor<Accumulate<T>, D> exponentials = {};
  Tensor<T, D> dout = {};
  Tensor<T, D> dq = {};   // out
  Tensor<T, D> dkv = {};  // out; undefined if kv is undefined
};
template <typename T, typename D>
TRIREME_EXPORT void scaled_dot_product_attention_backward(const AttentionBackward<T, D>& pass);

// The shape of out.
Shape attention_shape(const Shape& q, const Shape& kv_or_empty, const AttentionOptions& options);

}  // namespace ops
}  // namespace trireme
