#pragma once

#include <cstddef>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/loss_scale.hpp"
#include "trireme/ops/update/step_state.hpp"
#include "trireme/tensor/scalar.hpp"

// Decisions about a step that a GPU makes while the host does not wait. Pointers point to memory of D, or to GPU memory if the
// function has no D.
namespace trireme TRIREME_EXPORT {
namespace ops {

// The terms that add_to_totals() adds to the totals: a loss, the total weight of its targets, and the sum of the squares of
// gradients. T: float or double.
template <typename T, typename D>
struct StepSums {
  Scalar<T, D> loss = {};
  Scalar<double, D> target_weight = {};
  Scalar<double, D> squares = {};
};
template <typename T, typename D>
TRIREME_EXPORT void add_to_totals(const StepSums<T, D>& sums, StepTotals* totals);

// Computes the numbers of a step from its totals; `count` is the number of targets by which the gradients were divided.
template <typename D>
TRIREME_EXPORT void summarize_step(const StepTotals* totals, double count, StepNumbers* numbers);

// Copies if *condition is true; `bytes` is a multiple of 4.
template <typename D>
TRIREME_EXPORT void copy_if(const bool* condition, void* to, const void* from, std::size_t bytes);

// Computes the scalars of the step from its summary and writes them to the state. The step is skipped if its loss or its norm
// is inf or nan, or if its target weight is 0. The norm is clipped unless clip_norm is 0.
void decide_step(const StepSummary& summary, double clip_norm, StepState* state);

// updates[i] += used[i] for each parameter, unless the step is skipped.
void count_updates(const StepState* state, const std::int64_t* used, std::int64_t parameters, std::int64_t* updates);

// Divides the numbers of a step by the loss scale. If the norm of the gradients is not finite, counts an overflow in `scale`.
void unscale_step(const StepNumbers* scaled, LossScale* scale, StepNumbers* unscaled);
void update_loss_scale(const LossScaleRules& rules, LossScale* scale);

}  // namespace ops
}  // namespace trireme
