#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/update/step_scalars.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The state of an optimizer's steps in a GPU's memory.
struct StepState {
  StepScalars scalars = {};  // the host writes the learning rate
  StepScalars clipped = {};  // for gradients that a ClipUpdate has already scaled: gradient_scale is 1
  bool diverged = false;     // the step is skipped because its loss or norm is not finite
  std::int64_t skipped = 0;  // number of steps skipped for this reason
};

}  // namespace ops
}  // namespace trireme
