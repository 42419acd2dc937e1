#include <algorithm>
#include <cmath>

#include "ops/attention/attention_kernels.hpp"
#include "ops/attention/cached_attention_on.hpp"
#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// Rows [keys, size] for the kernels: the cache's own, or for half types their floats in a workspace.
template <typename T>
const Accumulate<T>* rows_of_head(const T* from, std::int64_t stride, std::int64_t keys, std::int64_t size,
                                  Accumulate<T>* workspace) {
  if constexpr (is_half<T>) {
    for (std::int64_t key = 0; key < keys; ++key) widen(from + key * stride, workspace + key * size, size);
    return workspace;
  } else {
    return from;
  }
}

}  // namespace

template <>
template <typename T>
void CachedQueries<Cpu>::attend(const CachedAttention<T, Cpu>& pass, const CachedAttentionSizes& sizes,
                                const std::vector<CachedQuery>& queries) {
  using A = Accumulate<T>;
  const auto& kernels = attention_kernels().of<A>();
  const std::int64_t size = sizes.size;
  const std::int64_t group = pass.heads / pass.kv_heads;
  std::int64_t most_keys = 0, all_keys = 0;
  for (const CachedQuery& query : queries) {
    most_keys = std::max(most_keys, query.end_key - query.first_key);
    all_keys += query.end_key - query.first_key;
  }
  const std::int64_t of_kernel = kernels.workspace(1, most_keys, size, size);
  const std::int64_t of_rows = is_half<T> ? most_keys * size : 0;
  const std::int64_t of_queries = is_half<T> ? group * size : 0;
  const std::int64_t elements = (of_kernel + 2 * of_rows + 2 * of_queries + 2 * group + 15) / 16 * 16;
  const Tensor<A, Cpu> workspaces({most_parts(), elements});
  const auto count = static_cast<std::int64_t>(queries.size()) * pass.kv_heads;
  const std::int64_t work = all_keys / static_cast<std::int64_t>(queries.size()) * size * group;
  parallel_ranges(
      count, 1, (1 << 17) / std::max<std::int64_t>(work, 1), [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
        A* const workspace = workspaces.data() + part * elements;
        A* const of_head = workspace + of_kernel;
        for (std::int64_t index = begin; index < end; ++index) {
          const CachedQuery& query = queries[static_cast<std::size_t>(index / pass.kv_heads)];
          const std::int64_t kv_head = index % pass.kv_heads;
          const std::int64_t keys = query.end_key - query.first_key;
          const std::int64_t stride = 2 * sizes.kv_width;
          const T* const k = pass.cache.data() + (query.sequence * sizes.capacity + query.first_key) * stride + kv_head * size;
          const T* const q = pass.qkv.data() + query.row * pass.qkv.dim(1) + kv_head * group * size;
          T* const out = pass.out.data() + query.row * sizes.q_width + kv_head * group * size;
          A* const floats_of_out = of_head + 2 * of_rows + of_queries;
          const AttentionHead<A> head{.q = rows_of_head(q, size, group, size, of_head + 2 * of_rows),
                                      .k = rows_of_head(k, stride, keys, size, of_head),
                                      .v = rows_of_head(k + sizes.kv_width, stride, keys, size, of_head + of_rows),
                                      .q_stride = size,
                                      .k_stride = is_half<T> ? size : stride,
                                      .v_stride = is_half<T> ? size : stride,
                                      .queries = 1,
                                      .keys = keys,
                                      .size = size,
                                      .value_size = size,
                                      .group = group,
                                      .scale = static_cast<A>(1 / std::sqrt(static_cast<double>(size))),
                                      .causal = true,
                                      .hidden = nullptr};
          const AttentionSums<A> sums{floats_of_out + of_queries, floats_of_out + of_queries + group};
          if constexpr (is_half<T>) {
            kernels.forward(head, floats_of_out, size, sums, workspace);
            narrow(floats_of_out, out, group * size);
          } else {
            kernels.forward(head, out, size, sums, workspace);
          }
        }
      });
}

TRIREME_INSTANTIATE(FLOATS, cached_attention, Cpu)

}  // namespace trireme::ops
