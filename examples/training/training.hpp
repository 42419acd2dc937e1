#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "training/decisions.hpp"
#include "training/metrics.hpp"
#include "training/options.hpp"
#include "training/progress.hpp"
#include "training/run_checkpoints.hpp"
#include "training/run_steps.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/data_parallel.hpp"

struct Validation {
  double loss = 0;
  std::optional<double> accuracy = {};  // share of the samples whose class was found
};

// What a model brings to its training.
struct TrainingWork {
  int micro_batches = 1;                                        // of one rank and step
  std::int64_t samples_per_step = 0;                            // of all ranks
  std::function<void(trireme::parallel::Step& step)> backward;  // of all of these micro-batches
  std::function<Validation()> validate;                         // the same on all ranks; empty: there is no validation
  std::function<void(trireme::State&)> add_to = {};             // what a checkpoint keeps beside the model and its optimizer
  std::function<void()> save;                                   // called by the ranks of the first replica when --save is given
};

// The part of a training run that does not depend on the model: steps, metrics and the last words.
// P: Float32, MixedBfloat16, MixedFloat16, which has its loss scaled; D: where the model lies.
template <typename P, typename D>
class Training {
 public:
  // Collective. The parameters have their first values. `settings`: all options, with those of the model; `unit`: what samples
  // are, "tokens".
  Training(const TrainingOptions& options, const trireme::optim::Settings& settings, const trireme::ProcessMesh& mesh,
           trireme::Model& model, std::string unit);

  bool run(const TrainingWork& work);  // false: a signal has stopped it before its last step

 private:
  trireme::StepRequests step(const TrainingWork& work, std::int64_t step, Progress& progress);
  trireme::StepSummary train_step(const TrainingWork& work, std::int64_t number);
  void add_to(trireme::State& state, const TrainingWork& work);
  void report(const StepMetrics& metrics, Progress& progress);
  void print_end(double seconds, std::int64_t steps, std::int64_t samples) const;

  TrainingOptions options_;
  trireme::ProcessMesh mesh_;
  std::string unit_;
  trireme::Model& model_;
  RunCheckpoints checkpoints_;
  trireme::parallel::DataParallel data_parallel_;
  Decisions decisions_{data_parallel_};
  std::unique_ptr<trireme::optim::Optimizer<P, D>> optimizer_;
  trireme::optim::LearningRate schedule_;
  std::unique_ptr<MetricsFile> metrics_;
  StepMetrics first_ = {};
  StepMetrics last_ = {};
  std::string validation_;  // the last one, in words
  double exposed_seconds_ = 0;
};
