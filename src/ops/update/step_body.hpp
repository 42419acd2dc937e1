#pragma once

#include <cmath>

#include "ops/base/scalar_argument.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/math/exponential.hpp"
#include "trireme/ops/update/loss_scale.hpp"
#include "trireme/ops/update/step_state.hpp"

// The operations of ops/update/step.hpp, each by a single thread or by a thread for each index.
namespace trireme::ops {

template <typename T>
struct AddToTotals {
  ScalarArgument<T> loss;
  ScalarArgument<double> target_weight;
  ScalarArgument<double> squares;
  StepTotals* totals;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    totals->loss_sum += static_cast<double>(loss.get());
    totals->target_weight += target_weight.get();
    totals->squares += squares.get();
  }
};

struct SummarizeStep {
  const StepTotals* totals;
  double count;
  StepNumbers* numbers;

  TRIREME_HOST_DEVICE void operator()(std::int64_t) const {
    const double scale = totals->target_weight == 0 ? 0 : count / totals->target_weight;
    *numbers = {.loss_sum = totals->loss_sum,
                .target_weight = totals->target_weight,
                .gradient_scale = scale,
                .gradient_norm = std::sqrt(totals->squares) * scale};
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
    scalars.skipped = !finite || step.target_weight == 0;
    state->clipped = scalars;
    state->clipped.gradient_scale = 1;
    state->diverged = !finite;
    state->skipped += finite ? 0 : 1;
  }
};

struct CountUpdates {
  const StepState* state;
  const std::int64_t* used;
  std::int64_t* updates;

  TRIREME_HOST_DEVICE void operator()(std::int64_t parameter) const {
    if (!state->scalars.skipped) updates[parameter] += used[parameter];
  }
};

struct CopyIf {
  const bool* condition;
  const std::uint32_t* from;
  std::uint32_t* to;

  TRIREME_HOST_DEVICE void operator()(std::int64_t word) const {
    if (*condition) to[word] = from[word];
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
