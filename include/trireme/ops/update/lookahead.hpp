#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct LookaheadStep {
  double share = 0.5;
};

// Zhang et al. 2019, arXiv 1907.08610: slow += share * (value - slow); value = slow.
template <typename T>
struct LookaheadUpdate {
  using Step = LookaheadStep;
  using Planes = ops::Planes<T, T>;

  T share;

  TRIREME_HOST_DEVICE explicit LookaheadUpdate(const LookaheadStep& step) : share(static_cast<T>(step.share)) {}

  TRIREME_HOST_DEVICE void operator()(T& value, T& slow) const {
    const T pulled = slow + share * (value - slow);
    slow = pulled;
    value = pulled;
  }
};

}  // namespace ops
}  // namespace trireme
