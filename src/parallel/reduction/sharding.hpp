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

// The shard of a rank is its part of every slice of the map. All-gathers send the new values of a slice to all ranks while the
// next slice is updated.
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
  std::vector<std::string> names_;  // of the all-gathers, by slice
};

// The shard of a rank with a hook: on each node the owner of a parameter updates it, and broadcasts send the new values to the
// node's other ranks while the next range is updated. All nodes compute the same bits from the same sums.
class OwnerShard final : public Shard {
 public:
  static constexpr std::int64_t longest_range = std::int64_t{1} << 20;  // elements that are broadcast together

  OwnerShard(FlatStore& store, const HookGroups& groups, std::vector<OwnedRange> owned);

  std::unique_ptr<Publication> publish() override;
  void sum_over_ranks(std::span<double> values) override;
  void sum_over_ranks(std::span<float> values) override;

  void gather_gradients();  // brings the sums of all owners to all ranks; collective

 private:
  FlatStore& store_;
  std::optional<Group> node_;      // none if each rank exchanges its own gradients
  std::vector<OwnedRange> owned_;  // of all owners; in ranges() those of other owners are empty
};

}  // namespace trireme::parallel
