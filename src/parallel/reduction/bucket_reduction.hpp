#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/hooks/compression.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// The reductions of one step's buckets. Buckets are launched in the same order on all ranks. The destructor waits for
// collectives under way.
class BucketSums {
 public:
  using Wait = std::function<void(Pending& pending)>;

  BucketSums() = default;
  BucketSums(const BucketSums&) = delete;
  BucketSums& operator=(const BucketSums&) = delete;
  virtual ~BucketSums() = default;

  // Starts the reduction of the next bucket, whose gradients are final, or a part of it. False: call it again for the rest.
  virtual bool launch() = 0;

  // Advances the reductions that have begun. Never waits.
  virtual void advance() {}

  // Call it when all buckets are launched. Works until the remaining collectives need nothing more from this rank.
  virtual void finish(const Wait& /*wait*/) {}

  // For a launched bucket: the ranges of the store, ascending, in which this rank gets the sums over the replicas, and whether
  // the sums of one range are there.
  virtual std::span<const Range> held(std::size_t bucket) const = 0;
  virtual bool is_done(std::size_t bucket, std::size_t range) = 0;
  virtual void wait_for(std::size_t bucket, std::size_t range, const Wait& wait) = 0;

  // Whether this rank adds its sums of the bucket to the norm. Of all ranks that hold the same sums, one does.
  virtual bool counts(std::size_t bucket) const = 0;
};

// Sums the gradients of buckets over the replicas and decides which sums each rank gets. There are three: AllReduce,
// ReduceScatter and HookedReduction; DataParallel chooses one when it is made.
class BucketReduction {
 public:
  BucketReduction(FlatStore& store, const Group& group) : store_(store), group_(group) {}
  BucketReduction(const BucketReduction&) = delete;
  BucketReduction& operator=(const BucketReduction&) = delete;
  virtual ~BucketReduction() = default;

  // Begins the step with this number. The buckets must not change until it ends.
  virtual std::unique_ptr<BucketSums> begin_step(std::span<const Bucket> buckets, std::int64_t number) = 0;

  // The shard that this rank updates; null if every rank updates all parameters.
  virtual std::shared_ptr<Shard> shard() const { return nullptr; }

  // Gathers all sums of the last step on every rank. Collective.
  virtual void gather() {}

  // For a hook: its state, the decision to compress, and the bytes sent to other nodes.
  virtual std::vector<NamedTensor> hook_state() const { return {}; }
  virtual std::optional<CompressionDecision> compression_decision() const { return {}; }
  virtual std::uint64_t hook_bytes_sent() const { return 0; }

  // Starts a reduction of a range, without a hook.
  virtual Pending start(const Range& range, std::string_view name) = 0;

  // The seconds of one reduction of so many bytes, without a hook. Overwrites gradients, so call it between steps. Collective.
  double time(std::int64_t bytes);

 protected:
  FlatStore& store() const { return store_; }
  const Group& group() const { return group_; }

 private:
  FlatStore& store_;
  Group group_;
};

}  // namespace trireme::parallel
