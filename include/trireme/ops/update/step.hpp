#pragma once

#include <cstddef>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/loss_scale.hpp"
#include "trireme/ops/update/step_state.hpp"
#include "trireme/tensor/scalar.hpp"

// What decides over a step on a GPU while the host goes on. Pointers are to the memory of D, of the GPU where there is no D.
namespace trireme TRIREME_EXPORT {
namespace ops {

// totals += the loss over targets that weigh `target_weight` together, and gradients whose squares have that sum. T: float or
// double.
template <typename T, typename D>
struct StepSums {
  Scalar<T, D> loss = {};
  Scalar<double, D> target_weight = {};
  Scalar<double, D> squares = {};
};
template <typename T, typename D>
TRIREME_EXPORT void add_to_totals(const StepSums<T, D>& sums, StepTotals* totals);

// The numbers of a step whose loss is over `count` targets.
template <typename D>
TRIREME_EXPORT void summarize_step(const StepTotals* totals, double count, StepNumbers* numbers);

// Copies where *condition holds; `bytes` is a multiple of 4.
template <typename D>
TRIREME_EXPORT void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes);

// Gives the state the scalars of the step with this summary, whose numbers lie there or are known. It is skipped unless loss
// and norm are finite and some target counted; the norm is clipped unless clip_norm is 0.
void decide_step(const StepSummary& summary, double clip_norm, StepState* state);

// updates[i] += used[i] for each parameter, unless the step is skipped.
void count_updates(const StepState* state, const std::int64_t* used, std::int64_t parameters, std::int64_t* updates);

// The summary of gradients without the loss scale, which notes whether their norm is finite.
void unscale_step(const StepNumbers* scaled, LossScale* scale, StepNumbers* unscaled);
void update_loss_scale(const LossScaleRules& rules, LossScale* scale);

}  // namespace ops
}  // namespace trireme
