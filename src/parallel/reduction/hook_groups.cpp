#include "parallel/reduction/hook_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::parallel {
namespace {

constexpr std::int64_t small = 1 << 14;  // fewer elements than this are not worth their own broadcast

}  // namespace

HookGroups make_hook_groups(const Group& group, CompressionBetween between, int max_exchanges) {
  HookGroups result;
  int node = 0;
  if (between == CompressionBetween::nodes) {
    const auto nodes = group.nodes();
    const auto holds_me = [&](const std::vector<int>& ranks) { return std::ranges::find(ranks, group.rank()) != ranks.end(); };
    const auto mine = std::ranges::find_if(nodes, holds_me);
    node = static_cast<int>(mine - nodes.begin());
    result.place = static_cast<int>(std::ranges::find(*mine, group.rank()) - mine->begin());
    result.owners = static_cast<int>(std::ranges::min_element(nodes, {}, &std::vector<int>::size)->size());
    if (static_cast<int>(nodes.size()) < group.size()) {
      result.sum = group.split(node, group.rank(), "gradients of a node");
      result.share = group.split(node, group.rank(), "sums for a node");
    }
  }
  for (int number = 0; number < max_exchanges; ++number) {
    const int color = std::min(result.place, result.owners);  // ranks that own nothing get a group of their own
    result.exchanges.push_back(group.split(color, group.rank(), fmt::format("compressed gradients, exchange {}", number + 1)));
  }
  return result;
}

std::vector<int> assign_owners(FlatStore& store, std::span<const int> parameters, int owners) {
  std::vector<int> owner_of(static_cast<std::size_t>(store.num_parameters()), -1);
  std::vector<std::int64_t> load(static_cast<std::size_t>(owners));
  int last = 0;
  for (const int index : parameters) {
    const std::int64_t numel = store.parameter(index).numel;
    if (numel >= small) last = static_cast<int>(std::ranges::min_element(load) - load.begin());
    load[static_cast<std::size_t>(last)] += numel;
    owner_of[static_cast<std::size_t>(index)] = last;
  }
  return owner_of;
}

std::vector<OwnedRange> owned_ranges(FlatStore& store, std::span<const int> parameters, std::span<const int> owner_of,
                                     std::int64_t longest) {
  std::vector<OwnedRange> ranges;
  for (const int index : parameters) {
    const ParameterInfo& info = store.parameter(index);
    const int owner = owner_of[static_cast<std::size_t>(index)];
    if (ranges.empty() || ranges.back().owner != owner || ranges.back().range.count() >= longest) {
      ranges.push_back({.owner = owner, .range = {info.offset, info.offset}});
    }
    ranges.back().range.end = info.offset + info.numel;
  }
  return ranges;
}

}  // namespace trireme::parallel
