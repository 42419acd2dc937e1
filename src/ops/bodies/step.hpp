#pragma once

#include <cmath>

#include "ops/bodies/scalar_argument.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/math/exponential.hpp"
#include "trireme/ops/loss_scale.hpp"
#include "trireme/ops/step_state.hpp"

// The operations of ops/step.hpp, each by one thread or one for each index.
namespace trireme::ops {

template <typename T>
struct SummarizeStep {
  ScalarArgument<T> loss;
  ScalarArgument<double> kept;
  double count;
  ScalarArgument<double> squares;
  StepNumbers* numbers;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    const double targets = kept.get();
    const double scale = targets == 0 ? 0 : count / targets;
    *numbers = {.loss_sum = static_cast<double>(loss.get()),
                .kept = targets,
                .gradient_scale = scale,
                .gradient_norm = std::sqrt(squares.get()) * scale};
  }
};

struct DecideStep {
  ScalarArgument<StepNumbers> numbers;
  double clip_norm;
  StepState* state;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    const StepNumbers step = numbers.get();
    const bool finite = math::is_finite(step.loss_sum) && math::is_finite(step.gradient_norm);
    const double clip = clip_norm / (step.gradient_norm + 1e-6);
    StepScalars& scalars = state->scalars;
    scalars.gradient_scale = step.gradient_scale * (clip_norm > 0 && clip < 1 ? clip : 1);
    scalars.left_out = !finite || step.kept == 0;
    state->clipped = scalars;
    state->clipped.gradient_scale = 1;
    state->skipped += finite ? 0 : 1;
  }
};

struct CountUpdates {
  const StepState* state;
  const std::int64_t* used;
  std::int64_t* updates;

  TRIREME_HOST_DEVICE void operator()(std::int64_t parameter) const {
    if (!state->scalars.left_out) updates[parameter] += used[parameter];
  }
};

struct UnscaleStep {
  const StepNumbers* scaled;
  LossScale* scale;
  StepNumbers* unscaled;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    StepNumbers step = *scaled;
    step.gradient_scale /= scale->scale;
    step.gradient_norm /= scale->scale;
    if (!math::is_finite(step.gradient_norm)) {
      ++scale->overflows;
      ++scale->skipped_steps;
    }
    *unscaled = step;
  }
};

struct UpdateLossScale {
  LossScaleRules rules;
  LossScale* scale;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const { scale->update(rules); }
};

}  // namespace trireme::ops
