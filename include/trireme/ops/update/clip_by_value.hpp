#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ClipStep {
  double limit = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// gradient = gradient_scale * gradient, but not outside [-limit, limit]; nan stays nan.
template <typename T>
struct ClipUpdate {
  using Step = ClipStep;
  using Planes = ops::Planes<T>;

  T scale;
  T limit;

  TRIREME_HOST_DEVICE explicit ClipUpdate(const ClipStep& step)
      : scale(static_cast<T>(step.gradient_scale)), limit(static_cast<T>(step.limit)) {}

  TRIREME_HOST_DEVICE void operator()(T& gradient) const {
    T g = scale * gradient;
    g = g > limit ? limit : g;
    gradient = g < -limit ? -limit : g;
  }
};

}  // namespace ops
}  // namespace trireme
