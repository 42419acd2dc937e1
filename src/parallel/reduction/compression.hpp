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

// The hook of a DataParallel: whether it is on in a step, and what its buckets need.
class Compression {
 public:
  // Seconds of one dense reduction of so many bytes, anywhere in the gradients. Collective.
  using DenseTrial = std::function<double(std::int64_t bytes)>;

  // Collective. `group`: the replicas; `model`: all ranks that hold parts of the model, which decide alike; `parameters`: the
  // trainable ones, in the order of the store; `sharded`: their owners update them.
  Compression(FlatStore& store, const Group& group, const Group& model, std::span<const int> parameters,
              const CompressionOptions& options, bool sharded);

  // Whether the step with this number, which begins now, is compressed. Collective at the first one that should be.
  bool begin_step(std::span<const Bucket> buckets, std::int64_t number, const DenseTrial& trial);

  const std::optional<CompressionDecision>& decision() const { return decision_; }
  CommunicationHook& hook() const { return *hook_; }
  const HookGroups& groups() const { return groups_; }
  bool owns(int parameter) const { return owner_of_[static_cast<std::size_t>(parameter)] == groups_.place; }
  std::vector<OwnedRange> owned_ranges(std::span<const int> parameters) const {
    return parallel::owned_ranges(store_, parameters, owner_of_);
  }

  // Whether all ranks of a node get the sums of a bucket. A tied parameter's they do, since ranks of another stage may have
  // other owners.
  bool shares_gradients(const Bucket& bucket) const;

  // Whether this rank, of all that get the same sums of a bucket, is the one that counts them.
  bool counts(const Bucket& bucket) const;

  // What owners update, where they do; null where every rank updates all.
  const std::shared_ptr<OwnerShard>& shard() const { return shard_; }
  std::int64_t step() const { return step_ - options_.start; }  // since compression began
  FlatStore& store() const { return store_; }
  std::uint64_t bytes_sent() const;

 private:
  CompressionDecision decide(std::span<const Bucket> buckets, const DenseTrial& trial);
  std::vector<double> largest(std::vector<double> values) const;  // of the ranks of the model, each
  ReductionCost measure_dense(std::int64_t most_bytes, const DenseTrial& trial) const;
  double measure_compressed(std::span<const Bucket> buckets);
  void fill_gradients(std::span<const Bucket> buckets);

  FlatStore& store_;
  Group group_;
  Group model_;
  CompressionOptions options_;
  std::shared_ptr<CommunicationHook> hook_;  // this one's own
  HookGroups groups_;
  std::vector<int> owner_of_;  // by parameter
  std::int64_t step_ = 0;      // that runs, or was the last
  bool exchanges_;             // between some of the replicas
  std::shared_ptr<OwnerShard> shard_;
  std::optional<CompressionDecision> decision_;
};

}  // namespace trireme::parallel
