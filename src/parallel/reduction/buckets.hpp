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

// ParallelOptions::buckets and what else decides how gradients are summed.
struct BucketSettings {
  std::int64_t bytes;
  std::int64_t first_bytes;
  std::int64_t slice_bytes;
  const CompressionOptions* hooked = nullptr;  // null: no hook
  bool tune = false;
  std::string profile = {};
};

// The trainable gradients of a model, cut into buckets, and how these are summed over the replicas. The cut may change between
// steps: it follows the order in which gradients become final, and what tuning finds.
class Buckets {
 public:
  // Collective. It decides what this rank updates, see reduction().shard().
  Buckets(const Replicas& replicas, const ProcessMesh& mesh, const BucketSettings& settings);

  // The buckets of the step with this number, none of them begun. Collective.
  std::unique_ptr<BucketSums> begin_step(std::int64_t number, int micro_batches);

  // In a step: its last backward pass begins, a gradient is final, all is reduced.
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
  enum class ReadyOrder : std::uint8_t { unknown, noted, agreed };  // noted: by a step that is done

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
  std::vector<ShardMap::Block> blocks_;    // the trainable parameters; a bucket is some neighbouring blocks
  std::vector<std::int64_t> block_bytes_;  // of the rank of the tensor axis that has most
  std::vector<std::size_t> block_of_;      // by parameter; of those that are trainable
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by parameter; of those that are trainable
  ReadyOrder ready_order_ = ReadyOrder::unknown;
  std::vector<std::int32_t> ready_position_;  // by parameter: how many gradients were final before its, in that step
  std::int32_t finals_ = 0;                   // of this step
  std::unique_ptr<BucketTuner> tuner_;        // null where nothing is tuned
};

}  // namespace trireme::parallel
