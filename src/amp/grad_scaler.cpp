#include "trireme/amp/grad_scaler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::amp {
namespace {

ops::LossScale in_numbers(const GradScaler::State& state) {
  return {
      .scale = static_cast<double>(state.scale), .growth_tracker = state.growth_tracker, .skipped_steps = state.skipped_steps};
}

GradScaler::State state_of(const ops::LossScale& numbers) {
  return {.scale = static_cast<float>(numbers.scale),
          .growth_tracker = numbers.growth_tracker,
          .skipped_steps = numbers.skipped_steps};
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), state_{.scale = static_cast<float>(options.init_scale)} {
  require(options.init_scale > 0 && std::isfinite(state_.scale), "init_scale is above 0 and finite, got {}",
          options.init_scale);
  require(options.growth_factor > 1, "growth_factor is above 1, got {}", options.growth_factor);
  require(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor lies between 0 and 1, got {}",
          options.backoff_factor);
  require(options.min_scale >= 0, "min_scale is 0 or more, got {}", options.min_scale);
  require(options.growth_interval > 0, "growth_interval is above 0, got {}", options.growth_interval);
}

void GradScaler::unscale_for(const void* optimizer, StepSummary& summary) {
  Progress& progress = progress_[optimizer];
  require(progress.stage != Stage::unscaled, "unscale() was called for this optimizer since the last update() already");
  require(progress.stage != Stage::stepped, "unscale() comes before step(): call update() at the end of an iteration");
  progress = {.stage = Stage::unscaled};
  if (summary.on_device) {
    summary = on_device().unscaled(std::move(summary));
    return;
  }
  state_ = state();
  is_on_device_ = false;  // the host decides
  const double divisor = scale();
  summary.gradient_scale /= divisor;
  summary.gradient_norm /= divisor;
  progress.found_inf = !std::isfinite(summary.gradient_norm);
}

bool GradScaler::begin_step(const void* optimizer, StepSummary& summary) {
  const bool unscaled_for_any = progress_.contains(nullptr) && progress_[nullptr].stage == Stage::unscaled;
  Progress& progress = progress_[unscaled_for_any ? nullptr : optimizer];
  require(progress.stage != Stage::stepped, "step() was called for this optimizer since the last update() already");
  if (progress.stage == Stage::ready) unscale_for(optimizer, summary);
  progress.stage = Stage::stepped;
  state_.skipped_steps += progress.found_inf ? 1 : 0;
  return !progress.found_inf;
}

void GradScaler::undo_step(const void* optimizer) {
  const auto unscaled = progress_.find(nullptr);
  if (unscaled == progress_.end()) {
    progress_.erase(optimizer);
  } else {
    state_.skipped_steps -= unscaled->second.found_inf ? 1 : 0;
    unscaled->second.stage = Stage::unscaled;
  }
}

void GradScaler::update() {
  if (!options_.enabled) return;
  require(!progress_.empty(), "update() before unscale() or step(): no gradients were looked at since the last update()");
  if (lies_on_device()) {
    on_device_->update(rules());
  } else {
    ops::LossScale next = in_numbers(state_);
    next.overflows = std::ranges::count_if(progress_, [](const auto& entry) { return entry.second.found_inf; });
    next.update(rules());
    state_ = state_of(next);
  }
  progress_.clear();
}

ops::LossScaleRules GradScaler::rules() const {
  return {.growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval};
}

DeviceLossScale& GradScaler::on_device() const {
  if (!on_device_) {
    on_device_ = std::make_unique<DeviceLossScale>(in_numbers(state_));
  } else if (!is_on_device_) {
    on_device_->write(in_numbers(state_));
  }
  is_on_device_ = true;
  return *on_device_;
}

void GradScaler::return_to_device() const {
  if (on_device_) on_device();
}

GradScaler::State GradScaler::state() const { return lies_on_device() ? state_of(on_device_->read()) : state_; }

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  require(new_scale > 0 && std::isfinite(static_cast<float>(new_scale)), "a scale is above 0 and finite, got {}", new_scale);
  State next = state();
  next.scale = static_cast<float>(new_scale);
  set_state(next);
}

void GradScaler::set_state(const State& state) {
  require(state.scale > 0 && std::isfinite(state.scale) && state.growth_tracker >= 0,
          "a scaler's state has a finite scale above 0 and a tracker of 0 or more, got {} and {}", state.scale,
          state.growth_tracker);
  state_ = state;
  if (lies_on_device()) on_device_->write(in_numbers(state));
  progress_.clear();
}

void GradScaler::add_to(trireme::State& state, const std::string& prefix) {
  state.before_use([this] { state_ = this->state(); });
  state.add(prefix + "scale", Shape{}, &state_.scale);
  state.add(prefix + "growth_tracker", &state_.growth_tracker);
  state.add(prefix + "skipped_steps", &state_.skipped_steps);
  state.after_load([this] { set_state(state_); });
}

}  // namespace trireme::amp
