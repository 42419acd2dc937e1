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

// The buckets of one step on their way. They are launched in their order, on all ranks alike. Destroying it waits for what is
// under way.
class BucketSums {
 public:
  using Wait = std::function<void(Pending& pending)>;

  BucketSums() = default;
  BucketSums(const BucketSums&) = delete;
  BucketSums& operator=(const BucketSums&) = delete;
  virtual ~BucketSums() = default;

  // The gradients of the next bucket are final. Starts a part of its reduction; false: call again, there is more.
  virtual bool launch() = 0;

  // Goes on with what has begun. Never waits.
  virtual void advance() {}

  // All buckets are launched. Goes on until what is left ends without this rank doing more for it.
  virtual void finish(const Wait& /*wait*/) {}

  // Of a bucket that was launched: the ranges of the store in which this rank gets the sums over the replicas, ascending, and
  // whether those of one of them are there.
  virtual std::span<const Range> held(std::size_t bucket) const = 0;
  virtual bool is_done(std::size_t bucket, std::size_t range) = 0;
  virtual void wait_for(std::size_t bucket, std::size_t range, const Wait& wait) = 0;

  // Several ranks may hold the same sums of a bucket. This one alone counts them.
  virtual bool counts(std::size_t bucket) const = 0;
};

// How the gradients of buckets are summed over the replicas, and which of the sums a rank gets. One of three, chosen when
// DataParallel is made: AllReduce, ReduceScatter, HookedReduction.
class BucketReduction {
 public:
  BucketReduction(FlatStore& store, const Group& group) : store_(store), group_(group) {}
  BucketReduction(const BucketReduction&) = delete;
  BucketReduction& operator=(const BucketReduction&) = delete;
  virtual ~BucketReduction() = default;

  // The step with this number and these buckets, which stay as they are until it ends.
  virtual std::unique_ptr<BucketSums> begin_step(std::span<const Bucket> buckets, std::int64_t number) = 0;

  // What this rank updates; null where every rank updates all.
  virtual std::shared_ptr<Shard> shard() const { return nullptr; }

  // Every rank gets all sums of the last step. Collective.
  virtual void gather() {}

  // Of a hook: what it keeps from step to step, whether it is on, and what it has sent to other nodes.
  virtual std::vector<NamedTensor> hook_state() const { return {}; }
  virtual std::optional<CompressionDecision> compression_decision() const { return {}; }
  virtual std::uint64_t hook_bytes_sent() const { return 0; }

  // Starts a reduction of any range, without a hook.
  virtual Pending start(const Range& range, std::string_view name) = 0;

  // Seconds of one of so many bytes, anywhere in the gradients, which nobody needs between steps. Collective.
  double time(std::int64_t bytes);

 protected:
  FlatStore& store() const { return store_; }
  const Group& group() const { return group_; }

 private:
  FlatStore& store_;
  Group group_;
};

}  // namespace trireme::parallel
