#include "parallel/reduction/all_reduce.hpp"

#include <functional>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

class AllReduced final : public BucketSums {
 public:
  using Start = std::function<Pending(const Bucket& bucket)>;

  AllReduced(std::span<const Bucket> buckets, bool counts, Start start)
      : buckets_(buckets), counts_(counts), start_(std::move(start)) {}

  bool launch() override {
    pending_.push_back(start_(buckets_[pending_.size()]));
    return true;
  }
  std::span<const Range> held(std::size_t bucket) const override { return {&buckets_[bucket].range, 1}; }
  bool is_done(std::size_t bucket, std::size_t /*range*/) override { return pending_[bucket].done(); }
  void wait_for(std::size_t bucket, std::size_t /*range*/, const Wait& wait) override { wait(pending_[bucket]); }
  bool counts(std::size_t /*bucket*/) const override { return counts_; }

 private:
  std::span<const Bucket> buckets_;
  bool counts_;
  Start start_;
  std::vector<Pending> pending_;  // by bucket
};

}  // namespace

std::unique_ptr<BucketSums> AllReduce::begin_step(std::span<const Bucket> buckets, std::int64_t /*number*/) {
  return std::make_unique<AllReduced>(buckets, group().rank() == 0,
                                      [this](const Bucket& bucket) { return start(bucket.range, bucket.name); });
}

Pending AllReduce::start(const Range& range, std::string_view name) {
  if (group().size() == 1) return {};
  return with_gradients(store(), range, [&](auto gradients) { return group().all_reduce(gradients, op_, name); });
}

}  // namespace trireme::parallel
