#pragma once

#include <vector>

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/movement.hpp"
#include "trireme/ops/attention/attention.hpp"
#include "trireme/ops/attention/cached_attention.hpp"

// The operation of ops/attention/cached_attention.hpp for any device: CachedQueries<D> attends for single tokens.
namespace trireme::ops {

struct CachedAttentionSizes {
  std::int64_t size;  // of a head
  std::int64_t q_width;
  std::int64_t kv_width;
  std::int64_t capacity;
};

// A token of a sequence at row `row` of qkv and out, which sees the keys [first_key, end_key).
struct CachedQuery {
  std::int64_t row;
  std::int64_t sequence;
  std::int64_t first_key;
  std::int64_t end_key;
};

template <typename D>
struct CachedQueries {
  template <typename T>
  static void attend(const CachedAttention<T, D>& pass, const CachedAttentionSizes& sizes,
                     const std::vector<CachedQuery>& queries);
};

template <typename T, typename D>
CachedAttentionSizes checked_sizes(const CachedAttention<T, D>& pass) {
  constexpr std::string_view op = "cached_attention";
  require_defined(op, "qkv", pass.qkv);
  require_defined(op, "cache", pass.cache);
  require_defined(op, "out", pass.out);
  const Shape &qkv = pass.qkv.shape(), &cache = pass.cache.shape();
  require(pass.heads > 0 && pass.kv_heads > 0 && pass.heads % pass.kv_heads == 0 && pass.window >= 0,
          "{}: {} heads cannot share {} heads of keys and values, or a window of {}", op, pass.heads, pass.kv_heads,
          pass.window);
  const std::int64_t parts = pass.heads + 2 * pass.kv_heads;
  require(qkv.size() == 2 && qkv[1] > 0 && qkv[1] % parts == 0, "{}: qkv of shape {} does not split into {} heads", op, qkv,
          parts);
  const std::int64_t size = qkv[1] / parts;
  const std::int64_t kv_width = pass.kv_heads * size;
  require(cache.size() == 3 && cache[2] == 2 * kv_width, "{}: the cache has shape {}, but needs [sequences, capacity, {}]", op,
          cache, 2 * kv_width);
  require_shape(op, "out", pass.out, {qkv[0], pass.heads * size});
  std::int64_t rows = 0;
  for (const CachedRows& part : pass.rows) {
    require(part.sequence >= 0 && part.sequence < cache[0] && part.first >= 0 && part.count > 0 &&
                part.first <= cache[1] - part.count,
            "{}: {} tokens from position {} on of sequence {} do not fit a cache of shape {}", op, part.count, part.first,
            part.sequence, cache);
    rows += part.count;
  }
  require(rows <= qkv[0], "{}: {} tokens are more than the rows of {}", op, rows, qkv);
  return {.size = size, .q_width = pass.heads * size, .kv_width = kv_width, .capacity = cache[1]};
}

// Columns [begin, end) of the rows of x.
template <typename T, typename D>
void copy_columns(const Tensor<T, D>& x, std::int64_t begin, std::int64_t end, Tensor<T, D> y) {
  move_elements(sliced("cached_attention", x.shape(), 1, {.begin = begin, .end = end}), x, y);
}

// Computes all tokens of a part at once, if the window hides no key from any of them.
template <typename T, typename D>
void attend_together(const CachedAttention<T, D>& pass, const CachedAttentionSizes& sizes, const CachedRows& part,
                     const Tensor<T, D>& qkv, const Tensor<T, D>& out) {
  AttentionForward<T, D> attention{
      .options = {.heads = static_cast<int>(pass.heads), .kv_heads = static_cast<int>(pass.kv_heads), .causal = true},
      .q = qkv.reshape({1, part.count, qkv.dim(1)}),
      .out = out.reshape({1, part.count, sizes.q_width}),
      .exponentials = Tensor<Accumulate<T>, D>({2, 1, pass.heads, part.count})};
  if (part.first > 0) {
    const Tensor<T, D> q({part.count, sizes.q_width});
    copy_columns(qkv, 0, sizes.q_width, q);
    attention.q = q.reshape({1, part.count, sizes.q_width});
    attention.kv = pass.cache.narrow(part.sequence, 1);
    attention.options.keys = part.first + part.count;
  }
  scaled_dot_product_attention(attention);
}

template <typename T, typename D>
void cached_attention(const CachedAttention<T, D>& pass) {
  const CachedAttentionSizes sizes = checked_sizes(pass);
  const Tensor<T, D> places = pass.cache.reshape({pass.cache.dim(0) * sizes.capacity, 2 * sizes.kv_width});
  std::vector<CachedQuery> queries;
  std::int64_t row = 0;
  for (const CachedRows& part : pass.rows) {
    Tensor<T, D> qkv = pass.qkv.narrow(row, part.count);
    if (pass.rotary.heads > 0) {
      RotaryOptions rotary_options = pass.rotary;
      rotary_options.first_position = part.first;
      Tensor<T, D> rotated = qkv.reshape({1, part.count, qkv.dim(1)});
      rotary(rotated, rotary_options, rotated);
    }
    copy_columns(qkv, sizes.q_width, qkv.dim(1), places.narrow(part.sequence * sizes.capacity + part.first, part.count));
    const bool sees_all = pass.window == 0 || part.first + part.count <= pass.window;
    if (part.count > 1 && sees_all) {
      attend_together(pass, sizes, part, qkv, pass.out.narrow(row, part.count));
    } else {
      for (std::int64_t i = 0; i < part.count; ++i) {
        const std::int64_t end = part.first + i + 1;
        queries.push_back({.row = row + i,
                           .sequence = part.sequence,
                           .first_key = sees_all || end <= pass.window ? 0 : end - pass.window,
                           .end_key = end});
      }
    }
    row += part.count;
  }
  if (!queries.empty()) CachedQueries<D>::template attend<T>(pass, sizes, queries);
  if (const std::int64_t padding = pass.out.dim(0) - row; padding > 0) {
    const Tensor<T, D> rest = pass.out.narrow(row, padding);
    device::copy_bytes(D{}, rest.data(), D{}, Tensor<T, D>::zeros(rest.shape()).data(), rest.span().size_bytes());
  }
}

}  // namespace trireme::ops
