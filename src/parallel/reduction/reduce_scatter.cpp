#include "parallel/reduction/reduce_scatter.hpp"

#include <functional>
#include <utility>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

class Scattered final : public BucketSums {
 public:
  using Start = std::function<Pending(const Range& slice, const Bucket& bucket)>;

  Scattered(std::span<const Bucket> buckets, const SlicedShard& shard, Start start)
      : buckets_(buckets), shard_(shard), start_(std::move(start)) {}

  bool launch() override {
    const Bucket& bucket = buckets_[launched_];
    pending_.push_back(start_(shard_.map().slices()[pending_.size()], bucket));
    if (pending_.size() < bucket.slices_end) return false;
    ++launched_;
    return true;
  }
  std::span<const Range> held(std::size_t bucket) const override {
    const std::size_t first = first_slice(bucket);
    return std::span(shard_.ranges()).subspan(first, buckets_[bucket].slices_end - first);
  }
  bool is_done(std::size_t bucket, std::size_t range) override { return pending_[first_slice(bucket) + range].done(); }
  void wait_for(std::size_t bucket, std::size_t range, const Wait& wait) override {
    wait(pending_[first_slice(bucket) + range]);
  }
  bool counts(std::size_t /*bucket*/) const override { return true; }

 private:
  std::size_t first_slice(std::size_t bucket) const { return bucket == 0 ? 0 : buckets_[bucket - 1].slices_end; }

  std::span<const Bucket> buckets_;
  const SlicedShard& shard_;
  Start start_;
  std::size_t launched_ = 0;      // buckets
  std::vector<Pending> pending_;  // by slice
};

}  // namespace

ReduceScatter::ReduceScatter(FlatStore& store, const Group& group, ReduceOp op, ShardMap map)
    : BucketReduction(store, group),
      op_(op),
      shard_(std::make_shared<SlicedShard>(store, group, std::move(map), op == ReduceOp::fixed_sum)) {}

std::unique_ptr<BucketSums> ReduceScatter::begin_step(std::span<const Bucket> buckets, std::int64_t /*number*/) {
  return std::make_unique<Scattered>(buckets, *shard_,
                                     [this](const Range& slice, const Bucket& bucket) { return start(slice, bucket.name); });
}

Pending ReduceScatter::start(const Range& range, std::string_view name) {
  return with_gradients(store(), range, [&](auto gradients) { return group().reduce_scatter(gradients, op_, name); });
}

void ReduceScatter::gather() {
  for (const Range& slice : shard_->map().slices()) {
    with_gradients(store(), slice, [&](auto gradients) { group().all_gather(gradients, "gradients").wait_on_host(); });
  }
}

}  // namespace trireme::parallel
