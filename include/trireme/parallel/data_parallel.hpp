#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/parallel_options.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"
#include "trireme/parallel/step/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// Trains replicas of a model on several ranks. Each rank computes gradients of its own samples, and all ranks get the sum.
// Ranks may have different numbers of counted targets, because the loss is the mean over all targets. Construct a DataParallel
// before the optimizer's first step, because DataParallel decides which parameters the optimizer updates on this rank.
//
//   parallel::DataParallel replicas(model, mesh);
//   optim::AdamW<Float32> optimizer(model);
//   ...
//   parallel::Step step = replicas.begin(number);
//   step.backward(batch, [&] { return model.loss(batch.tokens, batch.targets); });
//   step.update(optimizer);
class DataParallel {
 public:
  // Moves the model's store into the group's memory and checks that all ranks hold the same parameters and buffers with the
  // same values. Otherwise throws Error{rank_mismatch}, which names the parameter or buffer that differs. The model keeps the
  // memory, the shard and the group of batch norm after DataParallel is destroyed. Collective.
  DataParallel(Model& model, const ProcessMesh& mesh, const ParallelOptions& options = {});

  // For a whole model on each rank of a group, without pipeline, tensor and expert axes.
  DataParallel(Model& model, const Group& world, const ParallelOptions& options = {})
      : DataParallel(model, ProcessMesh(world), options) {}
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  ~DataParallel();

  // Begins a step. The number counts from 0 and is the same on all ranks; random numbers and the start of compression depend
  // on the number. Consecutive steps with the same number, such as the steps of a critic, draw different random numbers. A
  // step that repeats a skipped or given-up step draws the same random numbers as that step. `micro_batches` is the number of
  // micro-batches of this rank; under fixed bits it must be FixedBits::micro_batches / ranks. Only one step at a time may be
  // open.
  Step begin(std::int64_t number, int micro_batches = 1);

  // Does two things that a step launched by a StepGraph can't do. It sends requests to all ranks, as Step::ask does. At every
  // check_replicas-th call it also compares the replicas, and the host waits for the comparison. Call it between steps.
  // Collective.
  StepRequests exchange(const StepRequests& requests = {});

  // If the step is sharded, gathers the whole reduced gradient on all ranks, so that a program can look at the gradient. Call
  // it after Step::finish(). Collective.
  void gather_gradients() const;

  // The result of tuning; nothing before tuning ends.
  std::optional<BucketTuning> tuning() const;

  // Whether gradients are compressed; nothing before the first step that may be compressed.
  std::optional<CompressionDecision> compression_decision() const;

  // The tensors that the communication hook keeps for this rank's parameters. A checkpoint saves them, and a run with the same
  // nodes loads them.
  std::vector<NamedTensor> compression_state() const;

  // Adds the model, the loss scale, and each rank's compression_state() to a checkpoint's state. A run with other nodes starts
  // compression_state() with zeros. Names begin with "<prefix>model.", "<prefix>grad_scaler." and "<prefix>compression.".
  void add_to(State& state, const std::string& prefix = {});

  // The loss scaler of a model that computes in float16. For other models it is disabled and its scale is 1.
  const amp::GradScaler& scaler() const;

  // This rank's computations in the newest step of a pipeline, with times in seconds after the start of the step. In the gaps
  // the rank waited.
  std::vector<TimedAction> timeline() const;

  // Bytes that this rank has sent to other nodes for gradients and summaries.
  std::uint64_t bytes_sent() const;

  bool sharded() const;
  bool has_fixed_bits() const;
  std::int64_t num_buckets() const;

  // For the library only.
  struct Parts;
  Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace parallel
}  // namespace trireme
