#include "trireme/data/sources/grouped.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/core/error.hpp"

namespace trireme::data {

ItemGroups::ItemGroups(std::int64_t num_items, std::span<const std::int32_t> groups) : items(groups.size()) {
  require(num_items == std::ssize(groups), "{} items have {} groups", num_items, groups.size());
  std::iota(items.begin(), items.end(), std::int64_t{0});
  const auto group_of = [&](std::int64_t item) { return groups[static_cast<std::size_t>(item)]; };
  std::ranges::stable_sort(items, {}, group_of);
  for (std::size_t at = 0; at < items.size(); ++at) {
    require(group_of(items[at]) >= 0, "item {} has the group {}, which is below 0", items[at], group_of(items[at]));
    if (at == 0 || group_of(items[at]) != group_of(items[at - 1])) parts.emplace_back();
    ++parts.back().size;
  }
}

}  // namespace trireme::data
