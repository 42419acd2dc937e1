#pragma once

#include "parallel/reduction/bucket_reduction.hpp"
#include "parallel/reduction/sharding.hpp"

namespace trireme::parallel {

// Sums gradients by reduce-scatter: every rank gets the sums of its part of each slice and updates that part.
class ReduceScatter final : public BucketReduction {
 public:
  ReduceScatter(FlatStore& store, const Group& group, ReduceOp op, ShardMap map);

  std::unique_ptr<BucketSums> begin_step(std::span<const Bucket> buckets, std::int64_t /*number*/) override;
  Pending start(const Range& range, std::string_view name) override;
  std::shared_ptr<Shard> shard() const override { return shard_; }
  void gather() override;

 private:
  ReduceOp op_;
  std::shared_ptr<SlicedShard> shard_;
};

}  // namespace trireme::parallel
