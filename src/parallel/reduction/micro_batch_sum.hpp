#pragma once

#include <memory>
#include <span>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/range.hpp"

namespace trireme::parallel {

// How the gradients of a step's micro-batches are added, on this rank and over the ranks. Plain: each contribution is added
// where the sum lies. Under fixed bits those of 2^k micro-batches, one after the other, in the tree of ReduceOp::fixed_sum:
// like a binary counter it keeps the sum of each complete subtree, at most k planes.
class MicroBatchSum {
 public:
  // fixed_micro_batches: of a rank under fixed bits; 0: plain.
  MicroBatchSum(FlatStore& store, int fixed_micro_batches)
      : store_(store), fixed_micro_batches_(fixed_micro_batches), planes_(store) {}

  bool fixed_bits() const { return fixed_micro_batches_ > 0; }

  // A step of so many micro-batches begins.
  void begin_step(int micro_batches);

  // Before each micro-batch but the first. Under fixed bits the store's gradients are those of the one before, and the store is
  // then ready for the next one.
  void begin_next();

  // The last micro-batch's gradients in this range are final; they become the sum of all.
  void complete(const Range& range);

 private:
  const std::shared_ptr<device::Storage>& plane(std::size_t level);

  FlatStore& store_;
  int fixed_micro_batches_;
  unsigned added_ = 0;  // micro-batches
  OwnedPlanes planes_;  // by level: sums of 2^level micro-batches
};

double tree_sum(std::span<const double> values);  // in the same tree

}  // namespace trireme::parallel
