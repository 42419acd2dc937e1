#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/reduction/hook_groups.hpp"
#include "parallel/reduction/sharding.hpp"
#include "trireme/parallel/hooks/compression.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// The hook of a DataParallel: decides whether a step is compressed, and has what the step's buckets need.
class Compression {
 public:
  // Returns the seconds of one reduction without compression of so many bytes of gradients. Collective.
  using DenseTrial = std::function<double(std::int64_t bytes)>;

  // `group`: the replicas; `model`: all ranks of the model, which decide together; `parameters`: the trainable ones, in the
  // order of the store; `sharded`: only their owners update them. Collective.
  Compression(FlatStore& store, const Group& group, const Group& model, std::span<const int> parameters,
              const CompressionOptions& options, bool sharded);

  // Begins the step with this number and returns whether it is compressed. Collective at the first step that may be.
  bool begin_step(std::span<const Bucket> buckets, std::int64_t number, const DenseTrial& trial);

  const std::optional<CompressionDecision>& decision() const { return decision_; }
  CommunicationHook& hook() const { return *hook_; }
  const HookGroups& groups() const { return groups_; }
  bool owns(int parameter) const { return owner_of_[static_cast<std::size_t>(parameter)] == groups_.place; }
  std::vector<OwnedRange> owned_ranges(std::span<const int> parameters) const {
    return parallel::owned_ranges(store_, parameters, owner_of_);
  }

  // Whether all ranks of a node get the sums of a bucket. This is so without sharding, and for a tied parameter, which may have
  // other owners in another stage.
  bool shares_gradients(const Bucket& bucket) const;

  // See BucketSums::counts.
  bool counts(const Bucket& bucket) const;

  // The parameters that owners update; null if every rank updates all.
  const std::shared_ptr<OwnerShard>& shard() const { return shard_; }
  std::int64_t step() const { return step_ - options_.start; }  // since compression began
  FlatStore& store() const { return store_; }
  std::uint64_t bytes_sent() const;

 private:
  CompressionDecision decide(std::span<const Bucket> buckets, const DenseTrial& trial);
  std::vector<double> largest(std::vector<double> values) const;  // the elementwise maximum over the ranks of the model
  ReductionCost measure_dense(std::int64_t most_bytes, const DenseTrial& trial) const;
  double measure_compressed(std::span<const Bucket> buckets);
  void fill_gradients(std::span<const Bucket> buckets);

  FlatStore& store_;
  Group group_;
  Group model_;
  CompressionOptions options_;
  std::shared_ptr<CommunicationHook> hook_;
  HookGroups groups_;
  std::vector<int> owner_of_;  // by parameter
  std::int64_t step_ = 0;      // the number of the current or last step
  bool exchanges_;             // whether there are gradients to exchange between nodes (or ranks)
  std::shared_ptr<OwnerShard> shard_;
  std::optional<CompressionDecision> decision_;
};

}  // namespace trireme::parallel
