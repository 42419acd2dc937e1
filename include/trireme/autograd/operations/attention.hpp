#pragma once

#include <cstdint>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/attention/attention.hpp"

namespace trireme TRIREME_EXPORT {

// Without kv: packed self-attention, q [batch, time, (heads + 2 * kv_heads) * size] -> [batch, time, heads * size]. With kv:
// attention of queries q [batch, queries, heads * size] to keys and values kv [batch, keys, 2 * kv_heads * size]; the size of
// values may differ from the size of queries. See ops/attention/attention.hpp.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> scaled_dot_product_attention(const Variable<T, D>& q, const Variable<T, D>& kv,
                                                           const ops::AttentionOptions& options,
                                                           const Tensor<std::int32_t, D>& key_padding_mask = {},
                                                           const Tensor<std::int32_t, D>& first_keys = {});

}  // namespace trireme
