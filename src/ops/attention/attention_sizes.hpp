#pragma once

#include <compare>
#include <cstdint>

namespace trireme::ops {

// The sizes that follow from the shapes and options of attention.
struct AttentionSizes {
  std::int64_t batch;
  std::int64_t queries;
  std::int64_t keys;      // in use
  std::int64_t key_rows;  // of kv
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t size;  // of a head's queries and keys
  std::int64_t value_size;
  std::int64_t q_stride;  // elements from row to row
  std::int64_t kv_stride;
  bool packed;  // keys and values follow the queries in each row of q

  friend constexpr auto operator<=>(const AttentionSizes&, const AttentionSizes&) = default;

  constexpr std::int64_t group() const { return heads / kv_heads; }
  constexpr std::int64_t width() const { return heads * size; }
  constexpr std::int64_t out_width() const { return heads * value_size; }
  constexpr std::int64_t kv_width() const { return kv_heads * size; }
};

}  // namespace trireme::ops
