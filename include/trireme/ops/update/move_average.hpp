#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct AverageStep {
  double rate = 0;
};

template <typename T>
struct AverageUpdate {
  using Step = AverageStep;
  using Planes = ops::Planes<const T, T>;

  T rate;

  TRIREME_HOST_DEVICE explicit AverageUpdate(const AverageStep& step) : rate(static_cast<T>(step.rate)) {}

  TRIREME_HOST_DEVICE void operator()(const T& value, T& average) const { average += rate * (value - average); }
};

}  // namespace ops
}  // namespace trireme
