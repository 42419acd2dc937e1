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

// What an update does if a loss or a gradient is inf or nan; all ranks do the same. In such a step, values, moments and step
// counts do not change. In steps of DataParallel and StepGraph, buffers get back their values from before the step.
enum class NonFinitePolicy : std::uint8_t {
  stop,  // Error{diverged} with the step, its loss, and the first parameter and ranks that were not finite
  skip,  // skips the step; throws as `stop` after more than UpdateOptions::max_skipped skipped steps in a row
};

struct UpdateOptions {
  std::optional<double> learning_rate = {};  // for this and later steps; empty: unchanged
  // Limits for the gradients, which are averaged over all targets and have no loss scale; 0: no limit. A ParameterGroup may
  // have limits of its own.
  double clip_norm = 0;   // largest L2 norm of all gradients together, as torch.nn.utils.clip_grad_norm_
  double clip_value = 0;  // largest magnitude of an element, applied after clip_norm, as clip_grad_value_; takes one more pass
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

  std::uint64_t serial() const { return serial_; }  // unique among the optimizers of this process; above 0

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double learning_rate) = 0;  // finite, 0 or more

  // Updates every parameter that some rank used, as PyTorch does, and ends the step: the gradients of the next step overwrite
  // the gradients of this step. A step without any counted target changes nothing. Returns false if the step was skipped, see
  // NonFinitePolicy.
  //
  // With a summary in a GPU's memory (StepSummary::on_device) the host does not wait: the GPU skips a step that is not finite,
  // whatever the policy is, and step() returns true. The host does wait if the model has buffers (batch norm) and keep() was
  // not called in this step.
  virtual bool step(const StepSummary& summary, const UpdateOptions& options = {}) = 0;

  // Throws if the summary belongs to another model.
  virtual void check(const StepSummary& summary) const = 0;

  // The summary from which step() decides whether to update. If the host decides, it waits for the numbers and fills them in.
  virtual StepSummary decidable(StepSummary summary) const = 0;

  // Ends the step without an update. Parameters, moments and step counts do not change; buffers get back the values that
  // BufferPlane::keep() saved.
  virtual void skip_step() = 0;

  virtual std::int64_t skipped_steps() = 0;  // so far; the host waits for a GPU's count

  // For require_same(), which compares the ranks' settings.
  virtual Settings settings() const = 0;

  // Adds each parameter's elements of the planes, and its number of updates, to a checkpoint's state. Names are
  // "<prefix><plane>.<parameter>".
  virtual void add_to(State& state, const std::string& prefix = "optimizer.") = 0;

 private:
  std::uint64_t serial_;
};

}  // namespace optim
}  // namespace trireme
