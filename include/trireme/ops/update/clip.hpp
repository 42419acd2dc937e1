#pragma once

#include <limits>

#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ClipStep {
  double limit = std::numeric_limits<double>::infinity();  // limit of each element's magnitude
  double clip_norm = 0;                                    // limit of the gradient norm; 0: no limit
  const StepTotals* totals = nullptr;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Multiplies the gradient by gradient_scale. If the norm is larger than clip_norm, also multiplies it by clip_norm / norm, as
// torch.nn.utils.clip_grad_norm_. Then clamps each element to [-limit, limit]. nan stays nan.
template <typename T>
struct ClipUpdate {
  using Step = ClipStep;
  using Planes = ops::Planes<T>;

  T scale;
  T limit;

  TRIREME_HOST_DEVICE explicit ClipUpdate(const ClipStep& step)
      : scale(static_cast<T>(step.gradient_scale)), limit(static_cast<T>(step.limit)) {
    if (step.clip_norm == 0) return;
    const double norm = std::sqrt(step.totals->squares) * std::abs(step.gradient_scale);
    const double factor = step.clip_norm / (norm + 1e-6);
    if (factor < 1) scale = static_cast<T>(step.gradient_scale * factor);
  }

  TRIREME_HOST_DEVICE void operator()(T& gradient) const {
    T g = scale * gradient;
    g = g > limit ? limit : g;
    gradient = g < -limit ? -limit : g;
  }
};

}  // namespace ops
}  // namespace trireme
