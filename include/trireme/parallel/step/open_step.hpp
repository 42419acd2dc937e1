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

// What a StepGraph tells a step that it may record, and learns of it.
struct StepRecording {
  const ops::RandomPosition* position = nullptr;  // where a GPU reads the step's place in the random numbers
  std::optional<std::int64_t> samples = {};       // of its inputs, where they say it
  std::optional<double> learning_rate = {};
  bool is_captured = false;                  // its work is noted, not done
  optim::AnyOptimizer* optimizer = nullptr;  // that updates; set by the first step
};

// The inside of a Step: the model and the ranks that train it, as Step, its templates and a pipeline see them. DataParallel
// makes one for each step. Programs call Step.
class OpenStep {
 public:
  OpenStep() = default;
  OpenStep(const OpenStep&) = delete;
  OpenStep& operator=(const OpenStep&) = delete;
  virtual ~OpenStep() = default;

  virtual const Model& model() const = 0;
  virtual const amp::GradScaler& scaler() const = 0;

  // How many samples a micro-batch has. Nothing: not known, or not the same on all ranks.
  virtual std::optional<std::int64_t> samples_of_micro_batch() const = 0;
  virtual void set_samples(std::int64_t all) = 0;
  virtual TapeOptions names_of(const BatchSamples& samples) const = 0;  // of its random numbers

  // What stands for the targets of this rank's samples where others have a sample more: gradients are divided by it, so that
  // their sum over the ranks is that of all samples alike.
  virtual std::int64_t weighed(std::int64_t targets) const = 0;

  // Once for every micro-batch. listen: before its forward pass, in a pipeline before its backward pass.
  virtual void listen(Tape& tape) = 0;
  virtual void add(MicroBatchLoss loss, std::int64_t nominal_targets) = 0;
  virtual void add_of_stage(MicroBatchLoss loss) = 0;  // of a stage that is not the last one

  virtual void check(const StagePasses& passes) const = 0;  // before they run
  virtual void run_stages(StagePasses& passes) = 0;         // all micro-batches in a pipeline

  virtual void ask(const StepRequests& requests) = 0;
  virtual const StepSummary& finish() = 0;                                                       // once; see Step
  virtual const StepSummary* summary() const = 0;                                                // null before finish()
  virtual void check(const optim::UpdateOptions& options) const = 0;                             // before finish()
  virtual bool update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) = 0;  // after it; ends the step
  virtual void give_up() noexcept = 0;  // ends it too, unless it has ended
};

}  // namespace parallel
}  // namespace trireme
