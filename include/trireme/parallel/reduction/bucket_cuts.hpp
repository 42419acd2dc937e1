#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// How many gradients each bucket takes, in the order of the store.
using BucketCuts = std::vector<int>;

// Parameters whose gradients are reduced together.
struct Bucket {
  Range range;  // of the store
  std::vector<int> parameters;
  std::string name;
  std::size_t slices_end = 0;  // in a sharded step: one past its last slice
};

// A bucket takes gradients until it has `cap` bytes or more, the first bucket until it has `first_cap`. If both caps are 100,
// gradients of 60, 60 and 30 bytes make a bucket of two gradients and a bucket of one.
BucketCuts cut_by_cap(std::span<const std::int64_t> gradient_bytes, std::int64_t cap, std::int64_t first_cap);

// The time of a bucket's reduction: latency + bytes x seconds_per_byte. Buckets are reduced one after the other. Inside a node
// the computing cores do the reduction, which stops the computation; between nodes the reduction overlaps the computation.
struct ReductionCost {
  double latency_seconds = 0;
  double seconds_per_byte = 0;
  bool stops_compute = false;

  double seconds(double bytes) const { return latency_seconds + bytes * seconds_per_byte; }
};

struct CostSample {
  double bytes = 0;
  double seconds = 0;
};

// Fits the cost by least squares of the relative errors; neither term is negative. Needs at least one sample.
ReductionCost fit_cost(std::span<const CostSample> samples);

struct ReadyGradient {
  std::int64_t bytes = 0;
  double ready_seconds = 0;  // after the backward pass began
};

// The seconds that the reductions add to the backward pass, which ends with the last gradient.
double exposed_seconds(const BucketCuts& cuts, std::span<const ReadyGradient> gradients, const ReductionCost& cost);

// The cuts with the least exposed seconds; among equal cuts, the cuts with the fewest buckets. Uses dynamic programming over
// the first gradient of the last bucket, in O(n^2). The result is exact if gradients become final in the order of the store.
BucketCuts solve_buckets(std::span<const ReadyGradient> gradients, const ReductionCost& cost);

// The result of Tuning. Seconds refer to the slowest rank.
struct BucketTuning {
  BucketCuts cuts;
  double predicted_exposed_seconds = 0;  // of the cuts
  double step_seconds = 0;               // measured, from the start of the last micro-batch
  double initial_step_seconds = 0;       // the same with the initial buckets
  std::string text = {};                 // the profile that was used, or why no profile was used
};

}  // namespace parallel
}  // namespace trireme
