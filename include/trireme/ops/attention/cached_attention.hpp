#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/rotary.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// `count` tokens of a sequence, from position `first` on. The cache has the keys and values of the tokens before these.
struct CachedRows {
  std::int64_t sequence = 0;
  std::int64_t first = 0;
  std::int64_t count = 1;
};

// Causal self-attention of new tokens to a cache of keys and values, as in generation. Queries and keys get rotary positions if
// rotary.heads is above 0. Then keys and values are written to the cache, and each token attends to the tokens of its sequence
// up to itself.
//   qkv: [rows, (heads + 2 * kv_heads) * size], the tokens of rows[0], rows[1], ... one after the other, then
//     padding. qkv is overwritten, and out is 0 in padding.
//   cache: [sequences, capacity, 2 * kv_heads * size], all keys, then all values     out: [rows, heads * size]
template <typename T, typename D>
struct CachedAttention {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t window = 0;    // above 0: a token sees only the last `window` keys, its own included
  RotaryOptions rotary = {};  // first_position is ignored: `rows` has the positions
  std::vector<CachedRows> rows = {};
  Tensor<T, D> qkv = {};
  Tensor<T, D> cache = {};
  Tensor<T, D> out = {};  // out
};
template <typename T, typename D>
TRIREME_EXPORT void cached_attention(const CachedAttention<T, D>& pass);

}  // namespace ops
}  // namespace trireme
