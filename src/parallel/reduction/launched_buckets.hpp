#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "parallel/reduction/bucket_reduction.hpp"

namespace trireme::parallel {

// The buckets of one step: which gradients they still miss, and the reductions under way. A bucket is launched when its
// gradients are final and all buckets before it are launched, so that all ranks call alike.
class LaunchedBuckets {
 public:
  explicit LaunchedBuckets(std::unique_ptr<BucketSums> sums) : sums_(std::move(sums)) {}

  // Before the last backward pass: no gradient is final.
  void expect(std::span<const Bucket> buckets);
  void note_final(std::size_t bucket) { --missing_[bucket]; }

  // Launches the next bucket, or a part of it. False: its gradients are not final, or all are launched.
  bool launch_next();

  void advance() { sums_->advance(); }  // what is under way; never waits
  void finish();                        // once all are launched, see BucketSums::finish
  std::size_t count() const { return launched_; }

  // The ranges of a bucket whose sums over the replicas this rank gets, and whether they are there, or those of one of them.
  // `wait`: until they are.
  std::span<const Range> held(std::size_t bucket) const { return sums_->held(bucket); }
  bool is_reduced(std::size_t bucket, std::size_t range, bool wait);
  bool is_reduced(std::size_t bucket, bool wait);
  bool counts(std::size_t bucket) const { return sums_->counts(bucket); }  // this rank does, of all that get the same sums

  void wait_for(Pending& pending);
  void wait_for_all();
  double waited_seconds() const { return waited_seconds_; }  // this rank waited that long for others

 private:
  std::unique_ptr<BucketSums> sums_;
  std::vector<int> missing_;  // final gradients, by bucket
  std::size_t launched_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace trireme::parallel
