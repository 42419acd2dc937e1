#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "trireme/amp/device_loss_scale.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/state.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme TRIREME_EXPORT {
namespace amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  // steps without overflow after which the scale grows
  double min_scale = 1;                 // at this scale or below, the optimizer's NonFinitePolicy handles overflows
  bool enabled = true;                  // false: losses and steps pass through unchanged
};

// Keeps float16 gradients in range: multiplies losses by a scale, lowers the scale when a gradient overflows, and raises the
// scale after a while (Micikevicius et al. 2017, arXiv 1710.03740). Works like torch.cuda.amp.GradScaler. Call unscale() and
// step() at most once for each optimizer, then update(), which ends the iteration. A parallel::Step does all this with the
// scaler of its DataParallel. Without a Step:
//
//   scaler.scale(loss).backward();
//   scaler.step(optimizer, optim::summarize(model.store(), loss), {.clip_norm = 1});
//   scaler.update();
//
// An overflow shows in the norm of the step's summary. The norm covers the gradients of all ranks, so all ranks skip the same
// steps without another collective. The scale of a loss on a GPU lies on the GPU. If the summary lies on the GPU too, the host
// never waits: step() returns true, and the GPU skips each step with an overflow, even at min_scale.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  // Returns the same loss, with gradients that are scale() times as large.
  template <typename T, typename D>
  Loss<T, D> scale(Loss<T, D> loss) const {
    if constexpr (Scalar<T, D>::on_host) {
      loss.scale = loss.scale * scale();
    } else if (options_.enabled) {
      require(!loss.scale.element().defined(), "a loss on a GPU is scaled once");
      loss.scale = on_device().scale();
    }
    return loss;
  }

  // Divides gradient_norm and gradient_scale of `summary` by the loss scale, so that you can read the norm before step().
  template <typename Optimizer>
  void unscale(const Optimizer& optimizer, StepSummary& summary) {
    if (options_.enabled) unscale_for(&optimizer, summary);
  }

  // The same for a caller that does not know which optimizer step() will get.
  void unscale(StepSummary& summary) {
    if (options_.enabled) unscale_for(nullptr, summary);
  }

  // Calls optimizer.step() with the unscaled gradients. Skips the update if a gradient is inf or nan and the scale can still be
  // lowered. Returns whether the optimizer stepped.
  template <typename Optimizer>
  bool step(Optimizer& optimizer, StepSummary summary, const typename Optimizer::Options& options = {}) {
    if (options_.enabled) {
      bool overflowed = !begin_step(&optimizer, summary);
      if (summary.on_device) {
        summary = optimizer.decidable(std::move(summary));
        overflowed = !summary.on_device && !std::isfinite(summary.gradient_norm);
      }
      if (overflowed && scale() > options_.min_scale) {
        optimizer.skip_step();
        return false;
      }
    }
    try {
      return optimizer.step(summary, options);
    } catch (...) {
      undo_step(&optimizer);
      throw;
    }
  }

  void give_up() { progress_.clear(); }  // undoes unscale() and step() of this iteration

  // Lowers the scale if a step was skipped after the last update(). Raises the scale after growth_interval steps in a row that
  // were not skipped.
  void update();
  void update(double new_scale);

  // Brings the scale back to the GPU if an eager step left the scale on the host. Call this function before you record or
  // launch a step, because a recorded step reads the scale on the GPU.
  void return_to_device() const;

  // If the scale lies on a GPU, the host waits for the GPU.
  double scale() const { return options_.enabled ? static_cast<double>(state().scale) : 1.0; }
  std::int64_t skipped_steps() const { return state().skipped_steps; }

  // The values that a checkpoint saves.
  struct State {
    float scale = 0;
    std::int64_t growth_tracker = 0;  // steps since the scale changed
    std::int64_t skipped_steps = 0;
  };
  State state() const;
  void set_state(const State& state);
  void add_to(trireme::State& state, const std::string& prefix = "grad_scaler.");

 private:
  enum class Stage : std::uint8_t { ready, unscaled, stepped };
  struct Progress {
    Stage stage = Stage::ready;
    bool found_inf = false;
  };
  void unscale_for(const void* optimizer, StepSummary& summary);
  bool begin_step(const void* optimizer, StepSummary& summary);  // false: skip the step
  void undo_step(const void* optimizer);                         // as if step() had not been called
  bool lies_on_device() const { return is_on_device_ && on_device_ != nullptr; }
  DeviceLossScale& on_device() const;  // made only once, because recorded steps hold its address
  ops::LossScaleRules rules() const;

  GradScalerOptions options_;
  State state_;                                         // out of date while is_on_device_
  mutable std::unique_ptr<DeviceLossScale> on_device_;  // null until a loss or summary lies on a GPU
  mutable bool is_on_device_ = false;
  std::map<const void*, Progress> progress_;  // of this iteration, by optimizer
};

}  // namespace amp
}  // namespace trireme
