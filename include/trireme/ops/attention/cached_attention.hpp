#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/rotary.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// So many tokens of a sequence, from this position on. Keys and values of those before are in the cache.
struct CachedRows {
  std::int64_t sequence = 0;
  std::int64_t first = 0;
  std::int64_t count = 1;
};

// Causal self-attention of new tokens to a cache of keys and values, as in generation. Queries and keys get rotary positions if
// rotary.heads is above 0, then keys and values are written into the cache, and each token attends to those of its sequence up
// to itself.
//   qkv: [rows, (heads + 2 * kv_heads) * size], the tokens of rows[0], rows[1], ... one after the other; what comes after them
//     is padding. It is overwritten.
//   cache: [sequences, capacity, 2 * kv_heads * size], all keys, then all values     out: [rows, heads * size]
template <typename T, typename D>
struct CachedAttention {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t window = 0;    // above 0: a token sees only keys that are fewer places away
  RotaryOptions rotary = {};  // without first_position, which follows from the rows
  std::vector<CachedRows> rows = {};
  Tensor<T, D> qkv = {};
  Tensor<T, D> cache = {};
  Tensor<T, D> out = {};  // out
};
template <typename T, typename D>
TRIREME_EXPORT void cached_attention(const CachedAttention<T, D>& pass);

}  // namespace ops
}  // namespace trireme
