#pragma once

#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// The time that a stage takes for one micro-batch.
struct StageSeconds {
  double forward = 1;
  double backward = 1;         // gradients of the stage's input
  double weight_gradient = 1;  // follows `backward` directly unless the schedule splits the backward pass
};

struct TimedAction {
  PipelineAction action;
  double begin = 0;  // seconds after the step began
  double end = 0;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedAction>> actions;  // by rank; forward passes, backward passes, weight gradients
  double seconds = 0;                             // of the step

  double idle_seconds(int rank) const;
  double bubble() const;  // the share of waiting in the time of all ranks, in [0, 1]
};

// Simulates a schedule. `stages` has the times of each stage; a message arrives `transfer_seconds` after it was sent, and
// messages do not delay each other. Throws Error{invalid_argument} if the schedule deadlocks.
PipelineTimeline simulate(const PipelineSchedule& schedule, std::span<const StageSeconds> stages, double transfer_seconds = 0);

}  // namespace parallel
}  // namespace trireme
