#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "time_to_quality/mllog.hpp"

// The description of a run, which is logged before it starts.
struct Submission {
  std::string benchmark;
  std::int64_t seed = 1;
  std::int64_t batch_size = 0;  // samples of a step, all ranks together
  std::string optimizer;
  double learning_rate = 0;
  std::int64_t warmup_steps = 0;
  double weight_decay = 0;
  double target = 0;
};
void log_submission(const Mllog& log, const Submission& submission);

// A run up to its target: steps, evaluations, the last line with the status. `reached` judges the result of `evaluate`.
struct Quality {
  std::int64_t most_steps = 0;
  std::int64_t evaluate_every = 0;  // steps
  std::int64_t batch_size = 0;
  std::function<void(std::int64_t step)> train;
  std::function<double()> evaluate;
  std::function<bool(double quality)> reached;
};
// Returns the program's exit code; the status of the last line says whether the target was reached.
int train_to_quality(const Mllog& log, const Quality& quality);
