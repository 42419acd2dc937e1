#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trireme/autograd/functions.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

namespace trireme::parallel {

// A part of a model, as a pipeline sees it: a function from the activation that the stage before makes of a micro-batch to the
// one that the next stage takes, or to the loss.
template <typename M, typename D = Cpu>
struct PipelineStage {
  Shape input = {};   // of a micro-batch; the first stage has none
  Shape output = {};  // likewise; the last stage has none

  // x is undefined in the first stage, which knows the micro-batch by its number.
  std::function<Variable<M, D>(const Variable<M, D>& x, int micro_batch)> forward = {};  // all but the last stage
  std::function<Loss<M, D>(const Variable<M, D>& x, int micro_batch)> loss = {};         // the last stage
};

// Runs the stages of this rank through the micro-batches of a step, as the schedule says. Transfers go on while the rank
// computes, and it waits only for what its next forward or backward needs.
//
//   const auto schedule = parallel::make_pipeline_schedule({.name = "zb", .num_ranks = mesh.pipeline().size(), ...});
//   parallel::Pipeline<float> pipeline(mesh, schedule, {{.input = {8, 64}, .output = {8, 64}, .forward = ...}});
//   parallel::DataParallel data_parallel(stage, mesh);  // a module with the parameters of this rank's stages
//   ...
//   parallel::Step step = data_parallel.begin(number, schedule.num_micro_batches);
//   pipeline.run(step, first_sample, 8);
//   step.update(optimizer);
//
// M: float, double.
template <typename M, typename D = Cpu>
class Pipeline {
 public:
  // `stages`: this rank's, by chunk; stage s of the model lies on rank s % ranks of mesh.pipeline(). Collective on that group:
  // Error{rank_mismatch} or {invalid_argument}, the same on all ranks, where schedules differ or shapes do not fit.
  Pipeline(const ProcessMesh& mesh, PipelineSchedule schedule, std::vector<PipelineStage<M, D>> stages);

  // Forward and backward of all micro-batches of a step. `first_sample`: of micro-batch 0, the samples of the others follow.
  // Gradients are those of one rank that runs the same micro-batches one after the other, bit for bit (with a split backward
  // pass: see Tape::split_backward).
  void run(Step& step, std::int64_t first_sample, std::int64_t samples_per_micro_batch);

  // What this rank computed in the last run; seconds since that began. It waited in between.
  const std::vector<TimedAction>& timeline() const { return timeline_; }

 private:
  class Execution;
  PipelineSchedule schedule_;
  std::vector<PipelineStage<M, D>> stages_;
  Group group_;
  std::vector<TimedAction> timeline_;
};

}  // namespace trireme::parallel
