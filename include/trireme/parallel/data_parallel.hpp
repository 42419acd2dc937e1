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
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  ~DataParallel();

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
  const amp::GradScaler& scaler() const;

  // Of a model of stages: what this rank computed in the newest step, seconds since that began; it waited in between.
  std::vector<TimedAction> timeline() const;

  // Bytes that this rank has sent to other nodes for gradients and summaries.
  std::uint64_t bytes_sent() const;

  bool sharded() const;
  bool has_fixed_bits() const;
  std::int64_t num_buckets() const;

  // What it is made of, for the library alone.
  struct Parts;
  Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace parallel
}  // namespace trireme
