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

// Gradients in the order of the store, cut into buckets: how many gradients each bucket takes. Buckets are reduced in the order
// in which they are complete.
using BucketCuts = std::vector<int>;

// Parameters whose gradients are reduced together.
struct Bucket {
  Range range;  // of the store
  std::vector<int> parameters;
  std::string name;
  std::size_t slices_end = 0;  // where the step is sharded: its slices end before this one
};

// A bucket takes gradients until it has `cap` bytes or more, the first bucket until it has `first_cap`. Where both are 100,
// gradients of 60, 60 and 30 bytes make a bucket of two and a bucket of one.
BucketCuts cut_by_cap(std::span<const std::int64_t> gradient_bytes, std::int64_t cap, std::int64_t first_cap);

// What a bucket's reduction costs: latency + bytes x seconds_per_byte, one bucket after the other. Inside a node the cores
// that compute do it too, and it stops them; between nodes it runs beside them.
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

// The cost with the least squares of relative errors; neither term is negative. At least one sample.
ReductionCost fit_cost(std::span<const CostSample> samples);

struct ReadyGradient {
  std::int64_t bytes = 0;
  double ready_seconds = 0;  // since backward began
};

// Seconds that the reductions add to a backward pass that ends with the last gradient.
double exposed_seconds(const BucketCuts& cuts, std::span<const ReadyGradient> gradients, const ReductionCost& cost);

// The cuts with the least exposed seconds; among equals the one with the fewest buckets. Exact where gradients become final in
// the order of the store, by dynamic programming over the last bucket's first gradient: O(n^2).
BucketCuts solve_buckets(std::span<const ReadyGradient> gradients, const ReductionCost& cost);

// What Tuning has found; seconds are the slowest rank's.
struct BucketTuning {
  BucketCuts cuts;
  double predicted_exposed_seconds = 0;  // of the cuts
  double step_seconds = 0;               // measured, from the start of the last micro-batch
  double initial_step_seconds = 0;       // the same with the initial buckets
  std::string text = {};                 // where a profile was taken, or why not
};

}  // namespace parallel
}  // namespace trireme
