#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parallel/reduction/buckets.hpp"
#include "parallel/reduction/launched_buckets.hpp"
#include "parallel/replicas/replicas.hpp"

namespace trireme::parallel {

// Gradients that other stages, or the other ranks of an expert axis, have too: when they are reduced over the replicas, the
// sums are added up, the same bits on all. So whatever the reductions make of them, the copies stay the same. The sums begin
// in this order, which is the same on all ranks: first all over the expert axis, which need no other stage, by bucket; then
// those over stages, in the order of the layout.
class TiedSums {
 public:
  TiedSums(const Replicas& replicas, const Buckets& buckets);

  // Begins what can begin. `wait`: until all are done.
  void advance(LaunchedBuckets& launched, bool wait);
  bool are_done(std::size_t bucket) const;

 private:
  struct Sum {
    const Collectives* ranks = nullptr;
    std::size_t bucket = 0;
    std::vector<Range> shared;  // within the bucket
    std::string name;
    std::vector<Pending> pending = {};
    bool begun = false;
    bool done = false;
  };
  bool advance(Sum& sum, LaunchedBuckets& launched, bool wait);
  bool is_ready(const Sum& sum, LaunchedBuckets& launched, bool wait) const;
  void begin(Sum& sum, const LaunchedBuckets& launched) const;

  const Replicas& replicas_;
  std::vector<Sum> sums_;  // of what this rank holds
};

}  // namespace trireme::parallel
