#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/shard_map.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/bucket_cuts.hpp"
#include "trireme/parallel/parallel_options.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"
#include "trireme/parallel/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// What Tuning has found; seconds are the slowest rank's.
struct BucketTuning {
  BucketCuts cuts;
  double predicted_exposed_seconds = 0;  // of the cuts
  double step_seconds = 0;               // measured, from the start of the last micro-batch
  double initial_step_seconds = 0;       // the same with the initial buckets
  std::string text = {};                 // where a profile was taken, or why not
};

class BucketReduction;
class BucketTuner;
class Pipeline;
class MicroBatchSum;
class ReplicaComparison;
class SummaryGroup;

// Keeps replicas of a model equal: every rank computes gradients of its own samples, and their sum reaches all ranks.
// The ranks may hold different numbers of counted targets: the gradient is that of the mean over all of them.
// It decides what an optimizer of the model updates on this rank, so it is made before the optimizer's first step.
//
//   parallel::DataParallel replicas(model, mesh);
//   optim::AdamW<Float32> optimizer(model);
//   ...
//   parallel::Step step = replicas.begin(number);
//   step.backward(batch, [&] { return model.loss(batch.tokens, batch.targets); });
//   step.update(optimizer);
class DataParallel {
 public:
  // Collective. Moves the model's store into the group's memory and checks that all ranks hold the same parameters and
  // buffers with the same values: Error{rank_mismatch} names the one that differs. The model keeps what it is given, memory,
  // shard and batch norm's sum over the ranks, when DataParallel is gone.
  DataParallel(Model& model, const ProcessMesh& mesh, const ParallelOptions& options = {});

  // Of a whole model on each rank of a group: no pipeline and no tensor axis.
  DataParallel(Model& model, const Group& world, const ParallelOptions& options = {})
      : DataParallel(model, ProcessMesh(world), options) {}
  DataParallel(const DataParallel&) = delete;  // its steps know where it is
  DataParallel& operator=(const DataParallel&) = delete;

  // The step with this number, from 0 on, the same on all ranks: it names random numbers, and when compression begins. Several
  // steps of one number that follow each other, those of a critic, draw different ones; what was given up or skipped is done
  // over with the same. Under fixed bits as many micro-batches as FixedBits says for each rank. One step at a time is open.
  Step begin(std::int64_t number, int micro_batches = 1);

  // What a step that a StepGraph launches leaves to the host: asks all ranks, as Step::ask does, and each time it was called
  // check_replicas times compares the replicas, for which the host waits. Collective; between steps.
  StepRequests exchange(const StepRequests& requests = {});

  // Where the step is sharded: after Step::finish(), brings the whole reduced gradient to all ranks, for those who want to look
  // at it. Collective.
  void gather_gradients() const;

  // Once tuning has come to an end.
  std::optional<BucketTuning> tuning() const;

  // Once the first step that was to be compressed has begun.
  std::optional<CompressionDecision> compression_decision() const;

  // What the communication hook keeps from step to step, for this rank's parameters: a checkpoint saves these tensors and, in a
  // run with the same nodes, fills them again.
  std::vector<NamedTensor> compression_state() const;

  // What a checkpoint keeps: the model, the loss scale, and compression_state() of each rank; a run with other nodes starts
  // without errors again. Names begin with "<prefix>model.", "<prefix>grad_scaler." and "<prefix>compression.".
  void add_to(State& state, const std::string& prefix = {});

  // The loss scale of a model that computes in float16; 1 of any other, as with GradScalerOptions::enabled = false.
  const amp::GradScaler& scaler() const { return scaler_; }

  // Of a model of stages: what this rank computed in the newest step, seconds since that began; it waited in between.
  std::vector<TimedAction> timeline() const;

  // Bytes that this rank has sent to other nodes for gradients and summaries.
  std::uint64_t bytes_sent() const;

  bool sharded() const;
  bool has_fixed_bits() const;
  std::int64_t num_buckets() const { return static_cast<std::int64_t>(buckets_.size()); }

 private:
  friend class Reduction;
  friend class Step;
  template <typename D, typename... Elements>
  friend class StepGraph;
  struct BufferRun {  // neighbours
    Range elements;
    ReduceOp op;
  };

  Step begin(std::int64_t number, int micro_batches, StepRecording* recording);
  void launch_step(std::int64_t number);               // by a StepGraph
  void give_up(bool has_run);                          // the step that is open
  void compare(const optim::AnyOptimizer& optimizer);  // at its first update
  std::vector<int> trainable() const;
  std::vector<std::int64_t> parameter_bytes(const ProcessMesh& mesh) const;
  void choose_reduction(const ProcessMesh& mesh, const ParallelOptions& options, bool sharded);
  void make_buckets(const BucketCuts& cuts);
  void order_buckets();
  void agree_on_ready_order();
  void start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh);
  void compare_evaluation() const;
  void tie_parameters(const ProcessMesh& mesh);
  bool is_tied(int parameter) const { return !store_.parameter(parameter).tied_ranks.empty(); }
  void synchronize_buffers(bool synchronize_batch_norm);
  void wait_until(const std::function<bool()>& done) const;  // on a GPU
  std::vector<Pending> reduce_buffers() const;               // after a step

  Model& model_;
  FlatStore& store_;
  Group group_;
  std::shared_ptr<const SummaryGroup> summary_;
  std::vector<ShardMap::Block> blocks_;    // the trainable parameters; a bucket is some neighbouring blocks
  std::vector<std::int64_t> block_bytes_;  // of the rank of the tensor axis that has most
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_;  // by parameter
  // A parameter that several ranks of the pipeline axis hold; it has a bucket of its own.
  struct Tied {
    int parameter;  // below 0: others hold it, or it is frozen
    Axis ranks;
  };
  std::vector<Tied> tied_;  // the same on all ranks of that axis
  Axis expert_;             // the ranks of an expert axis; null: there is none
  amp::GradScaler scaler_;
  std::string metrics_prefix_;
  std::vector<std::uint64_t> compared_optimizers_;  // their serials: all ranks have the same settings
  bool is_in_step_ = false;
  std::int64_t step_ = -1;           // the number of the newest one
  bool is_updated_ = false;          // the newest one was, and was not skipped
  std::uint64_t earlier_steps_ = 0;  // that were updated under the same number
  std::int64_t finished_steps_ = 0;
  std::int64_t exchanges_ = 0;
  enum class ReadyOrder : std::uint8_t { unknown, noted, agreed };  // noted: by a step that is done
  ReadyOrder ready_order_ = ReadyOrder::unknown;
  std::vector<std::int32_t> ready_position_;  // by parameter: how many gradients were final before its, in that step
  std::shared_ptr<MicroBatchSum> micro_batch_sum_;
  std::shared_ptr<BucketReduction> reduction_;
  std::shared_ptr<Pipeline> pipeline_;                   // null where the model is one stage
  std::shared_ptr<BucketTuner> tuner_;                   // null where nothing is tuned
  std::vector<int> block_of_;                            // by parameter; -1 where it is not trainable
  std::shared_ptr<const ReplicaComparison> comparison_;  // null where nothing is compared
  Axis batch_norm_;                                      // null where batch norm is not synchronised
  std::vector<BufferRun> buffer_runs_;                   // what the ranks reduce after each step
};

}  // namespace parallel
}  // namespace trireme
