#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/reduction/hook_groups.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/shard_map.hpp"
#include "trireme/comm/base/group.hpp"

namespace trireme::parallel {

// Every rank updates its part of every slice of the map; all-gathers bring the new values to all ranks while the next slice is
// updated.
class SlicedShard final : public Shard {
 public:
  SlicedShard(FlatStore& store, const Group& group, ShardMap map, bool fixed_bits);

  std::unique_ptr<Publication> publish() override;
  void sum_over_ranks(std::span<double> values) override;
  void sum_over_ranks(std::span<float> values) override;

  const ShardMap& map() const { return map_; }

 private:
  FlatStore& store_;
  Group group_;
  ShardMap map_;
  std::vector<std::string> names_;  // of the gathers, by slice
};

// With a hook: on each node the owner of a parameter updates it; broadcasts bring the new values to the ranks of the node while
// the next ones are updated. Nodes compute the same bits, from the same sums.
class OwnerShard final : public Shard {
 public:
  static constexpr std::int64_t longest_range = std::int64_t{1} << 20;  // elements that are broadcast together

  OwnerShard(FlatStore& store, const HookGroups& groups, std::vector<OwnedRange> owned);

  std::unique_ptr<Publication> publish() override;
  void sum_over_ranks(std::span<double> values) override;
  void sum_over_ranks(std::span<float> values) override;

  void gather_gradients();  // the sums of all owners, on all ranks; collective

 private:
  FlatStore& store_;
  std::optional<Group> node_;      // none where each rank is by itself
  std::vector<OwnedRange> owned_;  // by all owners; ranges() has empty ones in place of the others'
};

}  // namespace trireme::parallel
