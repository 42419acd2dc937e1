#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trireme/autograd/flat_store.hpp"

namespace trireme::parallel {

// Adds the gradients of 2^k virtual shards, one after the other, in the tree of ReduceOp::fixed_sum. Like a binary counter it
// keeps the sum of each complete subtree: at most k planes.
class GradientTree {
 public:
  explicit GradientTree(FlatStore& store) : store_(store) {}

  // Takes the store's gradients for those of the next shard; the store is then ready for the shard after it.
  void push();

  // The last shard: adds what is kept to this range of the store's gradients.
  void complete(const Range& range);

  void clear() { shards_ = 0; }

 private:
  std::shared_ptr<device::Storage>& plane(std::size_t level);

  FlatStore& store_;
  unsigned shards_ = 0;
  std::vector<std::shared_ptr<device::Storage>> planes_;  // by level: sums of 2^level shards
};

double tree_sum(std::span<const double> values);  // in the same tree

}  // namespace trireme::parallel
