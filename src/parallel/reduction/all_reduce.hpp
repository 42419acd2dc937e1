#pragma once

#include "parallel/reduction/bucket_reduction.hpp"

namespace trireme::parallel {

// Sums gradients by all-reduce: every rank gets all sums.
class AllReduce final : public BucketReduction {
 public:
  AllReduce(FlatStore& store, const Group& group, ReduceOp op) : BucketReduction(store, group), op_(op) {}

  std::unique_ptr<BucketSums> begin_step(std::span<const Bucket> buckets, std::int64_t /*number*/) override;
  Pending start(const Range& range, std::string_view name) override;

 private:
  ReduceOp op_;
};

}  // namespace trireme::parallel
