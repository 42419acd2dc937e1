#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "training/options.hpp"
#include "training/progress.hpp"
#include "training/run_checkpoints.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/step_summary.hpp"

// What a trainer brings to the steps of its run.
struct RunSteps {
  // Does one and tells what it showed; gives what the ranks have asked for.
  std::function<trireme::StepRequests(std::int64_t step, Progress& progress)> step;
  RunCheckpoints::AddTo add_to;                                       // what a checkpoint keeps
  std::function<void()> save;                                         // on all ranks when --save is given
  std::function<void(double seconds, std::int64_t steps)> print_end;  // on rank 0, after one step or more
};

// From the checkpoint that the run goes on from, or the start, to its last step or a signal, with checkpoints, progress and the
// last words. Collective. `unit`: what samples are. False: a signal has stopped it.
bool run_steps(const TrainingOptions& options, const trireme::Group& world, const std::string& unit,
               RunCheckpoints& checkpoints, const RunSteps& steps);

double seconds_since(std::chrono::steady_clock::time_point start);
