#pragma once

#include <span>
#include <string>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"

namespace trireme::parallel {

// A range of the store whose gradients are reduce-scattered and whose values are gathered by one collective each.
struct Slice {
  Range range;
  std::string name;  // of the gather
};

// Every rank updates its part of every slice; all-gathers bring the new values to all ranks while the next slice is updated.
class SlicedShard final : public Shard {
 public:
  SlicedShard(FlatStore& store, const Group& group, std::vector<Slice> slices);

  std::unique_ptr<Publication> publish() override;
  void sum_over_ranks(std::span<double> values) override;

  const std::vector<Slice>& slices() const { return slices_; }

 private:
  FlatStore& store_;
  Group group_;
  std::vector<Slice> slices_;
};

}  // namespace trireme::parallel
