#pragma once

#include "ops/attention/attention_sizes.hpp"
#include "ops/base/check.hpp"
#include "trireme/ops/attention/attention.hpp"

namespace trireme::ops {

// Throws if the shapes and options do not fit each other.
AttentionSizes attention_sizes(const Shape& q, const Shape& kv_or_empty, const AttentionOptions& options);
double attention_scale(const AttentionOptions& options, const AttentionSizes& sizes);

// The sizes of a forward or backward pass. Checks its tensors too.
template <typename Pass>
AttentionSizes checked_attention_sizes(const Pass& pass) {
  const AttentionSizes sizes = attention_sizes(pass.q.shape(), pass.kv.shape(), pass.options);
  if (pass.key_padding_mask.defined()) {
    require_shape("attention", "key_padding_mask", pass.key_padding_mask.shape(), {sizes.batch, sizes.key_rows});
  }
  if (pass.first_keys.defined()) {
    require_shape("attention", "first_keys", pass.first_keys.shape(), {sizes.batch, sizes.queries});
  }
  require_shape("attention", "out", pass.out.shape(), {sizes.batch, sizes.queries, sizes.out_width()});
  require_shape("attention", "exponentials", pass.exponentials.shape(), {2, sizes.batch, sizes.heads, sizes.queries});
  return sizes;
}

}  // namespace trireme::ops
