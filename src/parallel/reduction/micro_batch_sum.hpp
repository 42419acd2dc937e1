#pragma once

#include <memory>
#include <span>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/range.hpp"

namespace trireme::parallel {

// Adds the gradients of a step's micro-batches on this rank. Without fixed bits each contribution is added to the store's
// gradients directly. Under fixed bits the gradients of 2^k micro-batches are added in the tree of ReduceOp::fixed_sum: like a
// binary counter it keeps the sum of each complete subtree, in at most k planes.
class MicroBatchSum {
 public:
  // fixed_micro_batches: micro-batches of a rank under fixed bits; 0: no fixed bits.
  MicroBatchSum(FlatStore& store, int fixed_micro_batches)
      : store_(store), fixed_micro_batches_(fixed_micro_batches), planes_(store) {}

  bool fixed_bits() const { return fixed_micro_batches_ > 0; }

  // Begins a step of so many micro-batches.
  void begin_step(int micro_batches);

  // Call it before each micro-batch except the first. Under fixed bits it keeps the gradients of the last micro-batch and
  // prepares the store for the next.
  void begin_next();

  // Replaces the gradients of the last micro-batch in this range, which are final, by the sum of all micro-batches.
  void complete(const Range& range);

 private:
  const std::shared_ptr<device::Storage>& plane(std::size_t level);

  FlatStore& store_;
  int fixed_micro_batches_;
  unsigned added_ = 0;  // micro-batches so far
  OwnedPlanes planes_;  // by level: sums of 2^level micro-batches
};

double tree_sum(std::span<const double> values);  // adds in the same tree

}  // namespace trireme::parallel
