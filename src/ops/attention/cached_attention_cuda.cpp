#include "ops/attention/cached_attention_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void CachedQueries<Cuda>::attend(const CachedAttention<T, Cuda>& pass, const CachedAttentionSizes& sizes,
                                 const std::vector<CachedQuery>& queries) {
  for (const CachedQuery& query : queries) {
    const std::int64_t keys = query.end_key - query.first_key;
    const Tensor<T, Cuda> q({1, sizes.q_width});
    copy_columns(pass.qkv.narrow(query.row, 1), 0, sizes.q_width, q);
    const Tensor<T, Cuda> places = pass.cache.reshape({pass.cache.dim(0) * sizes.capacity, 2 * sizes.kv_width});
    scaled_dot_product_attention(AttentionForward<T, Cuda>{
        .options = {.heads = static_cast<int>(pass.heads), .kv_heads = static_cast<int>(pass.kv_heads), .causal = true},
        .q = q.reshape({1, 1, sizes.q_width}),
        .kv = places.narrow(query.sequence * sizes.capacity + query.first_key, keys).reshape({1, keys, 2 * sizes.kv_width}),
        .out = pass.out.narrow(query.row, 1).reshape({1, 1, sizes.q_width}),
        .exponentials = Tensor<Accumulate<T>, Cuda>({2, 1, pass.heads, 1})});
  }
}

TRIREME_INSTANTIATE(FLOATS, cached_attention, Cuda)

}  // namespace trireme::ops
