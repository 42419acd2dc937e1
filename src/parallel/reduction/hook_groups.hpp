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

// The groups that reduce a bucket with a hook. Each handles the buckets in order, and different groups work on different
// buckets at the same time.
struct HookGroups {
  std::optional<Group> sum;      // the ranks of a node, before the exchange; none if every rank exchanges its own gradients
  std::optional<Group> share;    // the same ranks, after the exchange
  std::vector<Group> exchanges;  // the ranks with the same place on each node; one group for each exchange of a bucket
  int owners = 1;                // ranks of a node that exchange, each for some parameters: as many as the smallest node has
  int place = 0;                 // of this rank on its node
};

// Collective.
HookGroups make_hook_groups(const Group& group, CompressionBetween between, int max_exchanges);

// The owner of each parameter, by parameter index; -1 for those that are not in `parameters`, which has indices in the order of
// the store. Small parameters get the owner of their neighbour. The owners' loads are balanced along the store and do not
// depend on the buckets.
std::vector<int> assign_owners(FlatStore& store, std::span<const int> parameters, int owners);

// Neighbouring parameters with one owner.
struct OwnedRange {
  int owner = 0;
  Range range;
};

// Divides parameters, in the order of the store, into ranges with one owner; a range ends with the parameter that reaches
// `longest` elements.
std::vector<OwnedRange> owned_ranges(FlatStore& store, std::span<const int> parameters, std::span<const int> owner_of,
                                     std::int64_t longest = std::numeric_limits<std::int64_t>::max());

}  // namespace trireme::parallel
