#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "parallel/reduction/bucket_reduction.hpp"
#include "parallel/reduction/compression.hpp"

namespace trireme::parallel {

// A step that is compressed: buckets are summed within each node, go through the hook's exchanges by the owners of their
// parameters, and are shared within each node, unless the owner alone updates. The levels of different buckets overlap; each
// level starts the buckets in their order, so that all ranks call the collectives of its group alike.
class HookedBuckets final : public BucketSums {
 public:
  HookedBuckets(Compression& compression, std::span<const Bucket> buckets, std::int64_t step)
      : compression_(compression), buckets_(buckets), step_(step) {}

  bool launch() override;
  void advance() override { go_on(); }  // runs the hook where its exchange is done
  void finish(const Wait& wait) override;
  std::span<const Range> held(std::size_t bucket) const override { return held_[bucket]; }
  bool is_done(std::size_t bucket, std::size_t /*range*/) override { return num_done() > bucket; }
  void wait_for(std::size_t /*bucket*/, std::size_t /*range*/, const Wait& wait) override { finish(wait); }
  bool counts(std::size_t bucket) const override { return compression_.counts(buckets_[bucket]); }

 private:
  // What a bucket can start next, or has under way; between these two lie the exchanges.
  static constexpr int summed = 0;
  static constexpr int shared = 1 << 20;
  static constexpr int done = shared + 1;

  struct HookedBucket {
    HookedBucket(GradientBucket its_own, Range its_range, std::vector<OwnedRange> shared_ranges)
        : own(std::move(its_own)), range(its_range), to_share(std::move(shared_ranges)) {}

    GradientBucket own;                // the gradients that this rank owns
    Range range;                       // of the store
    std::vector<OwnedRange> to_share;  // within the node
    std::optional<HookTask> task;
    int next = summed;
    int started = -1;
    Exchange* exchange = nullptr;
    std::vector<Pending> pending;  // within the node
  };
  // So many of the first buckets are reduced.
  std::size_t num_done() const { return held_.size() - under_way_.size(); }

  bool go_on();  // whether anything did
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
  std::deque<HookedBucket> under_way_;    // those not done, and what came after the first of them
  bool failed_ = false;                   // the hook has: nothing can go on
};

}  // namespace trireme::parallel
