#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "parallel/compression.hpp"

namespace trireme::parallel {

// One step's buckets on their way: summed within each node, through the hook's exchanges by the owners of their parameters,
// shared within each node. The levels of different buckets overlap; each level starts the buckets in their order, so that all
// ranks call the collectives of its group alike.
class HookedBuckets {
 public:
  HookedBuckets(Compression& compression, std::int64_t step) : compression_(compression), step_(step) {}

  void launch(const Bucket& bucket);  // its gradients are final

  // So many of the first that were launched are reduced.
  std::size_t num_done() const { return launched_ - buckets_.size(); }

  // Never waits. Runs the hook where its exchange is done; whether anything went on.
  bool advance();

  // Returns when all buckets are reduced; calls `wait` for what is waited for.
  void finish(const std::function<void(Pending&)>& wait);

 private:
  // What a bucket can start next, or has under way; between these two lie the exchanges.
  static constexpr int summed = 0;
  static constexpr int shared = 1 << 20;
  static constexpr int done = shared + 1;

  struct HookedBucket {
    HookedBucket(GradientBucket its_own, Range its_range, std::vector<std::pair<int, Range>> its_parts)
        : own(std::move(its_own)), range(its_range), parts(std::move(its_parts)) {}

    GradientBucket own;                        // the gradients that this rank owns
    Range range;                               // of the store
    std::vector<std::pair<int, Range>> parts;  // runs of parameters with one owner
    std::optional<HookTask> task;
    int next = summed;
    int started = -1;
    Exchange* exchange = nullptr;
    std::vector<Pending> pending;  // within the node
  };
  bool advance(HookedBucket& bucket, int reached);
  int find_next(HookedBucket& bucket);
  void start(HookedBucket& bucket);
  static std::vector<Pending>& under_way(HookedBucket& bucket) {
    return bucket.exchange != nullptr ? bucket.exchange->pending() : bucket.pending;
  }

  Compression& compression_;
  std::int64_t step_;
  std::size_t launched_ = 0;
  std::deque<HookedBucket> buckets_;  // those not done, and what came after the first of them
};

}  // namespace trireme::parallel
