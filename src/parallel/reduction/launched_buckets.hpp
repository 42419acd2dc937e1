#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "parallel/reduction/bucket_reduction.hpp"

namespace trireme::parallel {

// The buckets of one step: how many gradients they still lack, and the reductions under way. A bucket is launched when its
// gradients are final and all buckets before it are launched, so that all ranks make the same calls in the same order.
class LaunchedBuckets {
 public:
  explicit LaunchedBuckets(std::unique_ptr<BucketSums> sums) : sums_(std::move(sums)) {}

  // Call it before the last backward pass, when no gradient is final.
  void expect(std::span<const Bucket> buckets);
  void note_final(std::size_t bucket) { --missing_[bucket]; }

  // Launches the next bucket, or a part of it. False if its gradients are not final, or all buckets are launched.
  bool launch_next();

  void advance() { sums_->advance(); }  // advances the reductions under way; never waits
  void finish();                        // call it once all are launched, see BucketSums::finish
  std::size_t count() const { return launched_; }

  // The ranges of a bucket whose sums over the replicas this rank gets, and whether the sums of one range, or of all, are
  // there. `wait`: waits until they are.
  std::span<const Range> held(std::size_t bucket) const { return sums_->held(bucket); }
  bool is_reduced(std::size_t bucket, std::size_t range, bool wait);
  bool is_reduced(std::size_t bucket, bool wait);
  bool counts(std::size_t bucket) const { return sums_->counts(bucket); }  // see BucketSums::counts

  void wait_for(Pending& pending);
  void wait_for_all();
  double waited_seconds() const { return waited_seconds_; }  // how long this rank waited for others

 private:
  std::unique_ptr<BucketSums> sums_;
  std::vector<int> missing_;  // by bucket: gradients that are not final
  std::size_t launched_ = 0;
  double waited_seconds_ = 0;
};

}  // namespace trireme::parallel
