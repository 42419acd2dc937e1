#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/reduction/bucket_reduction.hpp"
#include "parallel/reduction/bucket_tuner.hpp"
#include "parallel/reduction/micro_batch_sum.hpp"
#include "parallel/replicas/replicas.hpp"
#include "trireme/autograd/shard_map.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/hooks/compression.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// ParallelOptions::buckets, and the other options that decide how gradients are summed.
struct BucketSettings {
  std::int64_t bytes;
  std::int64_t first_bytes;
  std::int64_t slice_bytes;
  const CompressionOptions* hooked = nullptr;  // null: no hook
  bool tune = false;
  std::string profile = {};
};

// The trainable gradients of a model in buckets, and their reduction over the replicas. The buckets may change between steps,
// by the order in which gradients become final and by tuning.
class Buckets {
 public:
  // Decides what this rank updates, see reduction().shard(). Collective.
  Buckets(const Replicas& replicas, const ProcessMesh& mesh, const BucketSettings& settings);

  // Begins the step with this number; no bucket is launched yet. Collective.
  std::unique_ptr<BucketSums> begin_step(std::int64_t number, int micro_batches);

  // Call these in a step: when its last backward pass begins, when a gradient is final, when all gradients are reduced, and
  // when the step is given up.
  void begin_last_micro_batch();
  void note_final(int parameter);
  void end_step();
  void give_up_step();

  std::span<const Bucket> list() const { return buckets_; }
  std::size_t bucket_of(int parameter) const { return bucket_of_[static_cast<std::size_t>(parameter)]; }

  BucketReduction& reduction() const { return *reduction_; }
  MicroBatchSum& micro_batches() { return micro_batches_; }
  std::optional<BucketTuning> tuning() const { return tuner_ ? tuner_->result() : std::nullopt; }

 private:
  enum class ReadyOrder : std::uint8_t { unknown, noted, agreed };  // noted: a finished step has noted it

  std::vector<int> trainable() const;
  std::vector<std::int64_t> parameter_bytes(const ProcessMesh& mesh) const;
  void choose_reduction(const ProcessMesh& mesh, const BucketSettings& settings);
  void make(const BucketCuts& cuts);
  void order();
  void agree_on_ready_order();
  void start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh);

  const Replicas& replicas_;
  MicroBatchSum micro_batches_;
  std::unique_ptr<BucketReduction> reduction_;
  std::vector<ShardMap::Block> blocks_;    // the trainable parameters; a bucket is one or more neighbouring blocks
  std::vector<std::int64_t> block_bytes_;  // the maximum over the ranks of the tensor axis
  std::vector<std::size_t> block_of_;      // by parameter, for trainable ones
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by parameter, for trainable ones
  ReadyOrder ready_order_ = ReadyOrder::unknown;
  std::vector<std::int32_t> ready_position_;  // by parameter: how many gradients were final before its own, in the first step
  std::int32_t finals_ = 0;                   // final gradients in this step
  std::unique_ptr<BucketTuner> tuner_;        // null without tuning
};

}  // namespace trireme::parallel
