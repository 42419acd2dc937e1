#pragma once

#include <cstdint>

#include "trireme/core/step_summary.hpp"
#include "trireme/ops/loss_scale.hpp"
#include "trireme/ops/step_state.hpp"
#include "trireme/tensor/scalar.hpp"

// What decides over a step on a GPU while the host goes on. Pointers are to the GPU's memory.
namespace trireme::ops {

// The summary of a loss over `count` targets, `kept` of which count, and of gradients whose squares have that sum. T: float or
// double.
template <typename T>
struct StepSums {
  Scalar<T, Cuda> loss;
  Scalar<double, Cuda> kept;
  double count = 0;
  Scalar<double, Cuda> squares;
};
template <typename T>
void summarize_step(const StepSums<T>& sums, StepNumbers* numbers);

// Gives the state the scalars of the step with this summary, whose numbers lie there or are known. It is left out unless loss
// and norm are finite and some target was kept; the norm is clipped unless clip_norm is 0.
void decide_step(const StepSummary& summary, double clip_norm, StepState* state);

// updates[i] += used[i] for each parameter, unless the step is left out.
void count_updates(const StepState* state, const std::int64_t* used, std::int64_t parameters, std::int64_t* updates);

// The summary of gradients without the loss scale, which notes whether their norm is finite.
void unscale_step(const StepNumbers* scaled, LossScale* scale, StepNumbers* unscaled);
void update_loss_scale(const LossScaleRules& rules, LossScale* scale);

}  // namespace trireme::ops
