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
  double min_scale = 1;                 // an overflow at this scale or below is left to the optimizer's NonFinitePolicy
  bool enabled = true;                  // false: losses and steps pass through unchanged
};

// Keeps float16 gradients in range: losses are multiplied by a scale that is lowered when a gradient overflows, and raised
// after a while (Micikevicius et al. 2017, arXiv 1710.03740). The state machine of torch.cuda.amp.GradScaler: for each
// optimizer at most one unscale() and one step() before update(), which ends the iteration. A parallel::Step does all this
// with the scaler of its DataParallel; without one:
//
//   scaler.scale(loss).backward();
//   scaler.step(optimizer, optim::summarize(model.store(), loss), {.clip_norm = 1});
//   scaler.update();
//
// Whether a gradient overflowed is read off the step's summary, whose norm is that of all ranks: all ranks skip the same
// steps, without a collective of its own. Of a loss on a GPU the scale lies there, and with a summary there too the host never
// waits: step() returns true, and the GPU leaves out a step with an overflow at any scale.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  // The same loss with gradients that are scale() times as large.
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

  // Makes `summary` that of the unscaled gradients, for those who look at the norm before step().
  template <typename Optimizer>
  void unscale(const Optimizer& optimizer, StepSummary& summary) {
    if (options_.enabled) unscale_for(&optimizer, summary);
  }

  // The same before it is known which optimizer will step().
  void unscale(StepSummary& summary) {
    if (options_.enabled) unscale_for(nullptr, summary);
  }

  // optimizer.step() with the unscaled gradients, or no update at all when one of them is inf or nan and a lower scale may
  // help. Returns whether the optimizer stepped.
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

  void give_up() { progress_.clear(); }  // the iteration, as if it had not begun

  // Lowers the scale if a step was skipped since the last update(), raises it after growth_interval steps that were not.
  void update();
  void update(double new_scale);

  // A recorded step reads the scale at its place on a GPU. Call this before one is recorded or launched: it brings the scale
  // back there, where a step in between has left it on the host.
  void return_to_device() const;

  // The host waits for what lies on a GPU.
  double scale() const { return options_.enabled ? static_cast<double>(state().scale) : 1.0; }
  std::int64_t skipped_steps() const { return state().skipped_steps; }

  // What a checkpoint keeps.
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
  bool begin_step(const void* optimizer, StepSummary& summary);  // false: skip it
  void undo_step(const void* optimizer);                         // as if step() had not been called
  bool lies_on_device() const { return is_on_device_ && on_device_ != nullptr; }
  DeviceLossScale& on_device() const;  // where a loss or a summary lies there; made once: recorded steps know its place
  ops::LossScaleRules rules() const;

  GradScalerOptions options_;
  State state_;                                         // unless it lies on a GPU
  mutable std::unique_ptr<DeviceLossScale> on_device_;  // null: on none
  mutable bool is_on_device_ = false;
  std::map<const void*, Progress> progress_;  // of this iteration, by optimizer
};

}  // namespace amp
}  // namespace trireme
