#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/setting.hpp"
#include "trireme/core/state.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// What an update does where the loss or a gradient is inf or nan: the same on all ranks. Values, moments and step counts stay
// as they are, buffers are those of before the step in steps of DataParallel and StepGraph, which keep them.
enum class NonFinitePolicy : std::uint8_t {
  stop,  // Error{diverged} names the step, its loss, the first parameter and the ranks it began on
  skip,  // goes on without this step; the same error after more than UpdateOptions::max_skipped in a row
};

struct UpdateOptions {
  std::optional<double> learning_rate = {};  // of this step and later ones; otherwise it stays as it is
  // Of the gradients as they are without a loss scale, averaged over all targets; 0: no limit. A ParameterGroup may have its
  // own.
  double clip_norm = 0;   // largest L2 norm of all together, as torch.nn.utils.clip_grad_norm_
  double clip_value = 0;  // largest magnitude of an element after that, as clip_grad_value_; one more pass
  NonFinitePolicy non_finite = NonFinitePolicy::stop;
  int max_skipped = 10;
};

// Names and values of settings that all ranks must share.
using Settings = std::vector<Setting>;

// An optimizer of any precision and device.
class AnyOptimizer {
 public:
  using Options = UpdateOptions;

  AnyOptimizer();
  AnyOptimizer(const AnyOptimizer&) = delete;
  AnyOptimizer& operator=(const AnyOptimizer&) = delete;
  virtual ~AnyOptimizer() = default;

  std::uint64_t serial() const { return serial_; }  // no other optimizer of this process has it; above 0

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double learning_rate) = 0;  // finite, 0 or more

  // Updates every parameter that some rank used, as PyTorch does, and ends the step: the next gradient starts anew.
  // A step without any counted target changes nothing. False where the step was skipped, see NonFinitePolicy.
  //
  // With a summary in a GPU's memory (StepSummary::on_device) the host does not wait: a step that is not finite is skipped
  // there, whatever the policy says, and true is returned. Models with buffers (batch norm) that nobody has kept wait for the
  // summary.
  virtual bool step(const StepSummary& summary, const UpdateOptions& options = {}) = 0;

  // An error unless the summary is one of this optimizer's model.
  virtual void check(const StepSummary& summary) const = 0;

  // The summary with which step() decides: where the host has to, with the numbers that it waits for.
  virtual StepSummary decidable(StepSummary summary) const = 0;

  // Ends the step; parameters, moments and step counts stay as they are, buffers that were kept are those of before the step.
  virtual void skip_step() = 0;

  virtual std::int64_t skipped_steps() = 0;  // so far; the host waits for a GPU's count

  // For a comparison between ranks, as require_same makes it.
  virtual Settings settings() const = 0;

  // What a checkpoint keeps: the planes, by parameter, and how often each parameter was updated. Names are
  // "<prefix><plane>.<parameter>".
  virtual void add_to(State& state, const std::string& prefix = "optimizer.") = 0;

 private:
  std::uint64_t serial_;
};

}  // namespace optim
}  // namespace trireme
