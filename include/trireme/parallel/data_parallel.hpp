#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/shard_map.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/ops/update/step.hpp"
#include "trireme/parallel/bucket_cuts.hpp"
#include "trireme/parallel/parallel_options.hpp"

namespace trireme::parallel {

// What Tuning has found; seconds are the slowest rank's.
struct BucketTuning {
  BucketCuts cuts;
  double predicted_exposed_seconds = 0;  // of the cuts
  double step_seconds = 0;               // measured, from the start of the last micro-batch
  double initial_step_seconds = 0;       // the same with the initial buckets
  std::string text = {};                 // where a profile was taken, or why not
};

class BucketReduction;
class BucketSums;
class BucketTuner;
class DataParallel;
class MicroBatchSum;
class ReplicaComparison;
class SquareSum;
class SummaryGroup;

// The gradient reduction of one step: it listens to the backward pass of the last micro-batch and starts the reduction of
// each bucket as soon as its gradients are final, in an order that is the same on all ranks, while backward goes on. That order
// is the store's in the first step; from then on it is the one in which rank 0's first step completed the buckets. (Where the
// step is sharded it stays the store's.)
class Reduction final : public GradientListener {
 public:
  ~Reduction() override;
  Reduction(Reduction&&) noexcept;

  // Each micro-batch: after its tape is opened, before its forward pass (in a pipeline before its backward pass).
  // Where batch norm is synchronised the model is in training on all ranks or in evaluation on all; otherwise all get an
  // Error{rank_mismatch} that names them.
  void listen(Tape& tape);

  template <typename T, typename D>
  void add(const Loss<T, D>& loss) {  // each micro-batch; in a pipeline on the last stage alone
    const auto read = [sum = loss.sum.value(), target_weight = loss.target_weight] {
      return StepTotals{.loss_sum = static_cast<double>(sum.item()), .target_weight = target_weight.item()};
    };
    if constexpr (Tensor<T, D>::on_host) {
      add({.read = [known = read()] { return known; }, .add_to = {}}, loss.nominal_targets);
    } else {
      const ops::StepSums<T, D> sums{.loss = Scalar<T, D>(loss.sum.value()), .target_weight = loss.target_weight};
      add({.read = read, .add_to = [sums](StepTotals* totals) { ops::add_to_totals(sums, totals); }}, loss.nominal_targets);
    }
  }

  // Asks all ranks: what any of them asked for is in the summary of all.
  void request(const StepRequests& requests) { requests_ = requests; }

  // Waits for the buckets. Afterwards the store holds the sum over all ranks (where the step is sharded: only in the part that
  // this rank updates), and the summary what it means. Loss and norm are those of the whole model.
  StepSummary finish();

  // The same without the host waiting for a GPU: the numbers stay there (StepSummary::on_device; optim::read waits for them), a
  // step that is not finite is skipped by the optimizer, and replicas are not compared: DataParallel::exchange does that.
  // What a StepGraph can record. On the host, in a mesh with a pipeline or tensor axis and under fixed bits it is finish().
  StepSummary finish_on_device();

  bool has_fixed_bits() const;

 private:
  friend class DataParallel;
  Reduction(DataParallel& owner, int micro_batches, std::unique_ptr<BucketSums> sums);

  struct AddedLoss {
    std::function<StepTotals()> read;                   // of a GPU: the host waits
    std::function<void(StepTotals* on_device)> add_to;  // empty where the host knows the numbers
  };
  void add(AddedLoss loss, std::int64_t count);
  void on_final(int parameter) override;
  void launch_complete();
  void advance();
  bool reduced_over_replicas(std::size_t bucket, bool wait);
  void sum_tied(bool wait);
  void take_norms(bool wait);
  template <typename Wait>
  void count_waiting(const Wait& wait);
  void wait_for(Pending& pending);
  void wait_for_buckets();
  void launch_rest();
  void read_losses();
  StepSummary reduce_summary(bool on_device);

  DataParallel& owner_;
  int micro_batches_;
  int listened_ = 0;
  std::vector<AddedLoss> added_;  // by micro-batch
  StepRequests requests_ = {};
  std::vector<double> losses_;  // likewise, once they are read
  double target_weight_ = 0;
  std::int64_t count_ = 0;    // targets of a micro-batch
  std::vector<int> missing_;  // final gradients, by bucket
  std::size_t next_bucket_ = 0;
  // The gradient that other stages have too: when it is reduced over the replicas, the stages' sums are added up, the same bits
  // on all. So whatever the reductions make of it, its copies stay the same.
  struct Tied {
    std::size_t bucket = 0;
    std::vector<Pending> sums = {};
    bool begun = false;
    bool done = false;
  };
  std::optional<Tied> tied_;  // where this stage has one
  std::int32_t finals_ = 0;
  std::vector<bool> used_;  // by parameter
  std::unique_ptr<BucketSums> sums_;
  // Where the step is sharded: the ranges before this one are reduced and in squares_.
  std::size_t next_norm_bucket_ = 0;
  std::size_t next_norm_range_ = 0;
  std::unique_ptr<SquareSum> squares_;  // of the reduced gradients
  double waited_seconds_ = 0;
};

// Keeps replicas of a model equal: every rank computes gradients of its own samples, and their sum reaches all ranks.
// The ranks may hold different numbers of counted targets: the gradient is that of the mean over all of them.
// It decides what an optimizer of the model updates on this rank, so it is made before the optimizer's first step.
//
//   DataParallel data_parallel(model, mesh);
//   optim::AdamW<Float32> optimizer(model);
//   ...
//   auto reduction = data_parallel.begin_step();
//   Tape tape({.seed = 1, .step = step, .first_sample = first});
//   reduction.listen(tape);
//   const auto loss = model.loss(tokens, targets);
//   loss.backward();
//   reduction.add(loss);
//   optimizer.step(reduction.finish());
class DataParallel {
 public:
  // Collective. Moves the model's store into the group's memory and checks that all ranks hold the same parameters and
  // buffers with the same values: Error{rank_mismatch} names the one that differs. The model keeps what it is given, memory,
  // shard and batch norm's sum over the ranks, when DataParallel is gone.
  DataParallel(Model& model, const ProcessMesh& mesh, const ParallelOptions& options = {});

  // Under fixed bits as many micro-batches as FixedBits says for each rank. A step that was begun before and not
  // ended by Optimizer::step, skip_step or FlatStore::clear_gradients leaves nothing behind: no gradients, buffers as before
  // it.
  Reduction begin_step(int micro_batches = 1);

  // What a step with finish_on_device(), or one that a StepGraph launches, leaves to the host: asks all ranks, as
  // Reduction::request does, and each time it was called check_replicas times compares the replicas, for which the host waits.
  // Collective; between steps.
  StepRequests exchange(const StepRequests& requests = {});

  // Where the step is sharded: after finish(), brings the whole reduced gradient to all ranks, for those who want to look at
  // it. Collective.
  void gather_gradients() const;

  // Once tuning has come to an end.
  std::optional<BucketTuning> tuning() const;

  // Once the first step that was to be compressed has begun.
  std::optional<CompressionDecision> compression_decision() const;

  // What the communication hook keeps from step to step, for this rank's parameters: a checkpoint saves these tensors and, in a
  // run with the same nodes, fills them again.
  std::vector<NamedTensor> compression_state() const;

  // What a checkpoint keeps: compression_state() of each rank. A run with other nodes starts without errors again.
  void add_to(State& state, const std::string& prefix = "compression.") const;

  // Bytes that this rank has sent to other nodes for gradients and summaries.
  std::uint64_t bytes_sent() const;

  bool sharded() const;
  std::int64_t num_buckets() const { return static_cast<std::int64_t>(buckets_.size()); }

 private:
  friend class Reduction;
  struct BufferRun {  // neighbours
    Range elements;
    ReduceOp op;
  };

  std::vector<int> trainable() const;
  std::vector<std::int64_t> parameter_bytes(const ProcessMesh& mesh) const;
  void choose_reduction(const ProcessMesh& mesh, const ParallelOptions& options, bool sharded);
  void make_buckets(const BucketCuts& cuts);
  void order_buckets();
  void agree_on_ready_order();
  void start_tuning(const BucketCuts& initial, const std::string& profile, const ProcessMesh& mesh);
  void compare_evaluation() const;
  void synchronize_buffers(bool synchronize_batch_norm);
  void wait_for_device() const;
  std::vector<Pending> reduce_buffers() const;  // after a step

  Model& model_;
  FlatStore& store_;
  Group group_;
  std::shared_ptr<const SummaryGroup> summary_;
  std::vector<ShardMap::Block> blocks_;    // the trainable parameters; a bucket is some neighbouring blocks
  std::vector<std::int64_t> block_bytes_;  // of the rank of the tensor axis that has most
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_;  // by parameter
  int tied_ = -1;               // the trainable parameter that other stages hold too; it has a bucket of its own
  std::int64_t first_step_;
  int steps_ = 0;
  std::int64_t exchanges_ = 0;
  std::vector<std::int32_t> ready_position_;  // by parameter: how many gradients were final before its, in the first step
  std::shared_ptr<MicroBatchSum> micro_batch_sum_;
  std::shared_ptr<BucketReduction> reduction_;
  std::shared_ptr<BucketTuner> tuner_;                   // null where nothing is tuned
  std::vector<int> block_of_;                            // by parameter; -1 where it is not trainable
  std::shared_ptr<const ReplicaComparison> comparison_;  // null where nothing is compared
  Axis batch_norm_;                                      // null where batch norm is not synchronised
  std::vector<BufferRun> buffer_runs_;                   // what the ranks reduce after each step
};

}  // namespace trireme::parallel
