#pragma once

#include <cstddef>

#include "parallel/reduction/launched_buckets.hpp"
#include "parallel/reduction/tied_sums.hpp"
#include "parallel/replicas/replicas.hpp"
#include "parallel/replicas/square_sum.hpp"

namespace trireme::parallel {

// The norm of a step's reduced gradients. In a sharded step, and if ranks hold parts of the model, ranks have different
// gradients and add up their squares. Replicas that hold the whole model have the same gradients and need not.
class GradientNorm {
 public:
  explicit GradientNorm(const Replicas& replicas) : replicas_(replicas), squares_(replicas.has_fixed_bits()) {}

  // In a sharded step: adds the squares of this rank's part of each slice as soon as it is reduced, while it is in the cache.
  // With a GPU the host would have to wait for the backward pass, so there it happens at the end. `wait`: waits for all.
  void take_reduced(LaunchedBuckets& launched, const TiedSums& tied, bool wait);

  // Otherwise, when all buckets are launched: add the squares of all gradients at once. Before the summary if ranks hold parts
  // of the model, after it if all ranks have the same gradients.
  void take_before_summary(LaunchedBuckets& launched);
  void take_after_summary();

  void add_to(SummaryFields& fields) { squares_.add_to(fields); }
  double value();

 private:
  Range all() const { return {0, replicas_.store.trainable_numel()}; }

  const Replicas& replicas_;
  SquareSum squares_;
  // In a sharded step: the first range whose squares are not added yet.
  std::size_t next_bucket_ = 0;
  std::size_t next_range_ = 0;
};

}  // namespace trireme::parallel
