#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {

// The groups that a bucket with a hook goes through. Each sees the buckets in their order, so those of different buckets
// overlap.
struct HookGroups {
  std::optional<Group> sum;      // the ranks of a node, before the exchange; none where every rank has one of its own
  std::optional<Group> share;    // the same, after it
  std::vector<Group> exchanges;  // of the ranks with the same place on each node, by number
  int owners = 1;                // ranks of a node that exchange, each for some of the parameters: as many as the smallest has
  int place = 0;                 // of this rank on its node
};

// Collective.
HookGroups make_hook_groups(const Group& group, CompressionBetween between, int max_exchanges);

// Which owner looks after each of `parameters`, indices in the order of the store: neighbours of the same owner where they are
// small, balanced over any stretch, and the same whatever the buckets. By parameter index, -1 for those not listed.
std::vector<int> assign_owners(FlatStore& store, std::span<const int> parameters, int owners);

// Neighbours in the store with one owner.
struct OwnedRange {
  int owner = 0;
  Range range;
};

// These parameters, in the order of the store, by their owners; a range ends with the parameter that reaches `longest`
// elements.
std::vector<OwnedRange> owned_ranges(FlatStore& store, std::span<const int> parameters, std::span<const int> owner_of,
                                     std::int64_t longest = std::numeric_limits<std::int64_t>::max());

}  // namespace trireme::parallel
