#pragma once

#include "trireme/ops/update/formula.hpp"

namespace trireme::ops {

struct AverageStep {
  double rate = 0;
};

// average += rate * (value - average).
template <typename T>
struct AverageUpdate {
  using Step = AverageStep;
  using Planes = ops::Planes<const T, T>;

  T rate;

  TRIREME_HOST_DEVICE explicit AverageUpdate(const AverageStep& step) : rate(static_cast<T>(step.rate)) {}

  TRIREME_HOST_DEVICE void operator()(const T& value, T& average) const { average += rate * (value - average); }
};

}  // namespace trireme::ops
