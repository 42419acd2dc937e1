#pragma once

#include <algorithm>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The half-open range [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

// The contiguous share of rank `index` if `count` ranks divide `items` items. Shares differ by at most one item.
constexpr Range share_of(std::int64_t items, int index, int count) {
  const std::int64_t each = items / count, larger = items % count;  // the first ranks have one item more
  const std::int64_t begin = index * each + std::min<std::int64_t>(index, larger);
  return {.begin = begin, .end = begin + each + (index < larger ? 1 : 0)};
}

}  // namespace trireme
