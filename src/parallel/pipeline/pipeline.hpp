#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/pipeline/flow_transfers.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"
#include "trireme/parallel/step/stage_passes.hpp"

namespace trireme::parallel {

// Runs the stages of a rank for the micro-batches of each step, by a schedule. Transfers overlap the computation; the rank
// waits only for the data that its next forward or backward needs.
class Pipeline {
 public:
  // schedule: see ParallelOptions::schedule.
  Pipeline(const Group& ranks, std::string schedule, int num_chunks, const FlatStore& store);

  // Runs forward and backward of all micro-batches. Gradients have the same bits as on one rank that runs the micro-batches one
  // after the other (with a split backward pass: see Tape::split_backward).
  void run(StagePasses& passes);

  // Throws if micro-batches overlap in a stage with this schedule.
  void require_one_after_the_other() const;

  const std::vector<TimedAction>& timeline() const { return timeline_; }  // DataParallel::timeline

 private:
  class Execution;
  void make_schedule(int micro_batches);

  Group ranks_;
  std::string name_;
  int num_chunks_;
  FlowTransfers transfers_;
  std::optional<PipelineSchedule> schedule_;  // for the number of micro-batches of the newest step
  bool is_running_ = false;                   // a step is running, or has failed
  std::vector<TimedAction> timeline_;
};

}  // namespace trireme::parallel
