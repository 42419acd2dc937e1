#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ScaledSumStep {
  double x_factor = 1;
  double y_factor = 1;
};

template <typename T>
struct ScaledSumUpdate {
  using Step = ScaledSumStep;
  using Planes = ops::Planes<const T, T>;

  T x_factor;
  T y_factor;

  TRIREME_HOST_DEVICE explicit ScaledSumUpdate(const ScaledSumStep& step)
      : x_factor(static_cast<T>(step.x_factor)), y_factor(static_cast<T>(step.y_factor)) {}

  TRIREME_HOST_DEVICE void operator()(const T& x, T& y) const { y = x_factor * x + y_factor * y; }
};

}  // namespace ops
}  // namespace trireme
