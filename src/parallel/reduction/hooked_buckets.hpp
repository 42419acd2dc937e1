#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "parallel/reduction/bucket_reduction.hpp"
#include "parallel/reduction/compression.hpp"

namespace trireme::parallel {

// The buckets of a compressed step. A bucket passes several levels: it is summed within each node, the owners of its parameters
// run the hook's exchanges, and the sums are shared within each node unless only the owner updates. Different buckets may be on
// different levels at once; each level takes the buckets in order, so that all ranks call its collectives in the same order.
class HookedBuckets final : public BucketSums {
 public:
  HookedBuckets(Compression& compression, std::span<const Bucket> buckets, std::int64_t step)
      : compression_(compression), buckets_(buckets), step_(step) {}

  bool launch() override;
  void advance() override { go_on(); }  // also runs hooks whose exchange is done
  void finish(const Wait& wait) override;
  std::span<const Range> held(std::size_t bucket) const override { return held_[bucket]; }
  bool is_done(std::size_t bucket, std::size_t /*range*/) override { return num_done() > bucket; }
  void wait_for(std::size_t /*bucket*/, std::size_t /*range*/, const Wait& wait) override { finish(wait); }
  bool counts(std::size_t bucket) const override { return compression_.counts(buckets_[bucket]); }

 private:
  // The levels of a bucket. Exchange n is level n, between summed and shared.
  static constexpr int summed = 0;
  static constexpr int shared = 1 << 20;
  static constexpr int done = shared + 1;

  struct HookedBucket {
    HookedBucket(GradientBucket its_own, Range its_range, std::vector<OwnedRange> shared_ranges)
        : own(std::move(its_own)), range(its_range), to_share(std::move(shared_ranges)) {}

    GradientBucket own;                // the bucket's gradients that this rank owns
    Range range;                       // of the store
    std::vector<OwnedRange> to_share;  // to be broadcast within the node
    std::optional<HookTask> task;
    int next = summed;
    int started = -1;
    Exchange* exchange = nullptr;
    std::vector<Pending> pending;  // collectives within the node
  };
  // The buckets before this number are reduced.
  std::size_t num_done() const { return held_.size() - under_way_.size(); }

  bool go_on();  // returns whether any bucket advanced
  bool go_on(HookedBucket& bucket, int reached);
  int find_next(HookedBucket& bucket);
  Exchange* run_hook(HookedBucket& bucket);
  void start(HookedBucket& bucket);
  static std::vector<Pending>& pending_of(HookedBucket& bucket) {
    return bucket.exchange != nullptr ? bucket.exchange->pending() : bucket.pending;
  }

  Compression& compression_;
  std::span<const Bucket> buckets_;
  std::int64_t step_;
  std::vector<std::vector<Range>> held_;  // by bucket, of those launched
  std::deque<HookedBucket> under_way_;    // from the first bucket that is not done on
  bool failed_ = false;                   // the hook has thrown: no bucket advances any more
};

}  // namespace trireme::parallel
