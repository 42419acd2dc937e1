#include "parallel/reduction/launched_buckets.hpp"

#include "trireme/core/stopwatch.hpp"

namespace trireme::parallel {

void LaunchedBuckets::expect(std::span<const Bucket> buckets) {
  for (const Bucket& bucket : buckets) missing_.push_back(static_cast<int>(bucket.parameters.size()));
}

bool LaunchedBuckets::launch_next() {
  if (launched_ == missing_.size() || missing_[launched_] > 0) return false;
  if (sums_->launch()) ++launched_;
  return true;
}

void LaunchedBuckets::finish() {
  sums_->finish([this](Pending& pending) { wait_for(pending); });
}

bool LaunchedBuckets::is_reduced(std::size_t bucket, std::size_t range, bool wait) {
  if (!wait) return sums_->is_done(bucket, range);
  sums_->wait_for(bucket, range, [this](Pending& pending) { wait_for(pending); });
  return true;
}

bool LaunchedBuckets::is_reduced(std::size_t bucket, bool wait) {
  if (bucket >= launched_) return false;
  for (std::size_t range = 0; range < held(bucket).size(); ++range) {
    if (!is_reduced(bucket, range, wait)) return false;
  }
  return true;
}

void LaunchedBuckets::wait_for(Pending& pending) {
  const Stopwatch stopwatch;
  pending.wait_on_stream();
  waited_seconds_ += stopwatch.seconds();
}

void LaunchedBuckets::wait_for_all() {
  for (std::size_t bucket = 0; bucket < launched_; ++bucket) is_reduced(bucket, true);
}

}  // namespace trireme::parallel
