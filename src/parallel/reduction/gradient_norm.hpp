#pragma once

#include <cstddef>

#include "parallel/reduction/launched_buckets.hpp"
#include "parallel/reduction/tied_sums.hpp"
#include "parallel/replicas/replicas.hpp"
#include "parallel/replicas/square_sum.hpp"

namespace trireme::parallel {

// The norm of a step's reduced gradients. Where the step is sharded, ranks have different ones and add up their squares; so do
// parts of a model. Replicas that hold the whole model have the same gradients.
class GradientNorm {
 public:
  explicit GradientNorm(const Replicas& replicas) : replicas_(replicas), squares_(replicas.has_fixed_bits()) {}

  // Of a sharded step: takes this rank's part of each slice as soon as it is reduced, while it lies in the cache. A GPU would
  // make the host wait for the backward pass, so there it is at the end. `wait`: takes all.
  void take_reduced(LaunchedBuckets& launched, const TiedSums& tied, bool wait);

  // All buckets are launched. Takes all gradients at once: before the summary where ranks hold parts of the model, after it
  // where all of them have the same.
  void take_before_summary(LaunchedBuckets& launched);
  void take_after_summary();

  void add_to(SummaryFields& fields) { squares_.add_to(fields); }
  double value();

 private:
  Range all() const { return {0, replicas_.store.trainable_numel()}; }

  const Replicas& replicas_;
  SquareSum squares_;
  // Of a sharded step: the ranges before this one are taken.
  std::size_t next_bucket_ = 0;
  std::size_t next_range_ = 0;
};

}  // namespace trireme::parallel
