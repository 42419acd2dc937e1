#pragma once

#include <cstdint>
#include <optional>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/step/batch_samples.hpp"
#include "trireme/parallel/step/micro_batch_loss.hpp"
#include "trireme/parallel/step/stage_passes.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// Data that a StepGraph shares with the step that it may record.
struct StepRecording {
  const ops::RandomPosition* position = nullptr;  // in the GPU's memory: the step's number and first sample
  std::optional<std::int64_t> samples = {};       // of the inputs, if known
  std::optional<double> learning_rate = {};
  bool is_captured = false;                  // the step is being recorded, not executed
  optim::AnyOptimizer* optimizer = nullptr;  // set by the first step's update()
};

// The interface through which Step and a pipeline use the model and the ranks that train it. DataParallel makes an OpenStep for
// each step. Programs call Step.
class OpenStep {
 public:
  OpenStep() = default;
  OpenStep(const OpenStep&) = delete;
  OpenStep& operator=(const OpenStep&) = delete;
  virtual ~OpenStep() = default;

  virtual const Model& model() const = 0;
  virtual const amp::GradScaler& scaler() const = 0;

  // The number of samples in a micro-batch; nothing if it is not known or differs between ranks.
  virtual std::optional<std::int64_t> samples_of_micro_batch() const = 0;
  virtual void set_samples(std::int64_t all) = 0;
  virtual TapeOptions names_of(const BatchSamples& samples) const = 0;  // identify the samples' random numbers

  // The number of targets by which this rank's gradients are divided. If some ranks have one sample more, all ranks use the
  // number for the largest share, so that each sample has the same weight in the sum.
  virtual std::int64_t weighed(std::int64_t targets) const = 0;

  // Call listen() and add() once for every micro-batch: listen() before its forward pass, or in a pipeline before its backward
  // pass.
  virtual void listen(Tape& tape) = 0;
  virtual void add(MicroBatchLoss loss, std::int64_t nominal_targets) = 0;
  virtual void add_of_stage(MicroBatchLoss loss) = 0;  // losses that layers of an earlier stage add

  virtual void check(const StagePasses& passes) const = 0;  // before run_stages()
  virtual void run_stages(StagePasses& passes) = 0;         // all micro-batches in a pipeline

  virtual void ask(const StepRequests& requests) = 0;
  virtual const StepSummary& finish() = 0;                            // call it once; see Step::finish
  virtual const StepSummary* summary() const = 0;                     // null before finish()
  virtual void check(const optim::UpdateOptions& options) const = 0;  // before finish()
  virtual bool update(optim::AnyOptimizer& optimizer,
                      const optim::UpdateOptions& options) = 0;  // after finish(); ends the step
  virtual void give_up() noexcept = 0;                           // ends the step without an update, unless it has ended
};

// The number of targets by which the gradients of a micro-batch are divided: the batch's own nominal_targets, which
// micro-batches of different sizes have, or else that of its loss, weighed by the step.
template <typename Batch>
std::int64_t nominal_targets_of(const Batch& batch, std::int64_t of_loss, const OpenStep& step) {
  if constexpr (requires { batch.nominal_targets + of_loss; }) {
    if (batch.nominal_targets > 0) return batch.nominal_targets;
  }
  return step.weighed(of_loss);
}

}  // namespace parallel
}  // namespace trireme
