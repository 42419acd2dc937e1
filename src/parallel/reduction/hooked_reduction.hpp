#pragma once

#include "parallel/reduction/all_reduce.hpp"
#include "parallel/reduction/compression.hpp"

namespace trireme::parallel {

// Sums gradients by a communication hook, or by all-reduce in steps that are not compressed. Every rank gets all sums; in a
// compressed, sharded step only those that it owns.
class HookedReduction final : public BucketReduction {
 public:
  // Collective; see Compression.
  HookedReduction(FlatStore& store, const Group& group, const Group& model, std::span<const int> parameters,
                  const CompressionOptions& options, bool sharded)
      : BucketReduction(store, group),
        dense_(store, group, ReduceOp::sum),
        compression_(store, group, model, parameters, options, sharded) {}

  std::unique_ptr<BucketSums> begin_step(std::span<const Bucket> buckets, std::int64_t number) override;
  Pending start(const Range& range, std::string_view name) override { return dense_.start(range, name); }
  std::shared_ptr<Shard> shard() const override { return compression_.shard(); }
  void gather() override;
  std::vector<NamedTensor> hook_state() const override { return compression_.hook().state(); }
  std::optional<CompressionDecision> compression_decision() const override { return compression_.decision(); }
  std::uint64_t hook_bytes_sent() const override { return compression_.bytes_sent(); }

 private:
  AllReduce dense_;
  Compression compression_;
};

}  // namespace trireme::parallel
