#pragma once

#include <span>
#include <string>
#include <vector>

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

  const ShardMap& map() const { return map_; }

 private:
  FlatStore& store_;
  Group group_;
  ShardMap map_;
  std::vector<std::string> names_;  // of the gathers, by slice
};

}  // namespace trireme::parallel
