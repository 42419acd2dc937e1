#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

// The arguments of a step that the passes of all optimizers share.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Numbers of a step that kernels read from the GPU's memory, so that a step can be captured in a graph once and launched many
// times. The GPU computes them, or the host writes them before each step.
struct StepScalars {
  double learning_rate = 1;
  double gradient_scale = 1;
  bool skipped = false;  // weights and state stay as they are
};

// Pointers to numbers of a step in the GPU's memory. Null pointers are not read.
struct StepOnDevice {
  const StepScalars* scalars = nullptr;   // factors of the step's learning rate and gradient scale
  const std::int64_t* updates = nullptr;  // replaces the step's `update`
};

// Sums of squares of some or all weights of a parameter, and of the update (LAMB) or gradient (LARS) of these weights. All
// fields are doubles, so that ranks can reduce them.
struct UpdateSquares {
  double weight = 0;
  double update = 0;
};

}  // namespace ops
}  // namespace trireme
