#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parallel/reduction/buckets.hpp"
#include "parallel/reduction/launched_buckets.hpp"
#include "parallel/replicas/replicas.hpp"

namespace trireme::parallel {

// Adds up gradients that other stages, or the other ranks of an expert axis, have too, after their reduction over the replicas.
// All copies get the same bits, so they stay equal even if the reductions round differently. The sums begin in the same order
// on all ranks: first those over the expert axis, which need no other stage, by bucket; then those over stages, in the order of
// the layout.
class TiedSums {
 public:
  TiedSums(const Replicas& replicas, const Buckets& buckets);

  // Begins the sums that can begin. `wait`: waits until all are done.
  void advance(LaunchedBuckets& launched, bool wait);
  bool are_done(std::size_t bucket) const;

 private:
  struct Sum {
    const Collectives* ranks = nullptr;
    std::size_t bucket = 0;
    std::vector<Range> shared;  // the ranges of the bucket that are added up
    std::string name;
    std::vector<Pending> pending = {};
    bool begun = false;
    bool done = false;
  };
  bool advance(Sum& sum, LaunchedBuckets& launched, bool wait);
  bool is_ready(const Sum& sum, LaunchedBuckets& launched, bool wait) const;
  void begin(Sum& sum, const LaunchedBuckets& launched) const;

  const Replicas& replicas_;
  std::vector<Sum> sums_;  // over gradients that this rank holds
};

}  // namespace trireme::parallel
