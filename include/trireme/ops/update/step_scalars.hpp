#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

// What the passes of the optimizers are told of a step, besides what each is told alone.
namespace trireme TRIREME_EXPORT {
namespace ops {

// What of a step a GPU decides, or the host tells it from step to step: kernels read it from the GPU's memory, so that a step
// can be recorded once and launched many times.
struct StepScalars {
  double learning_rate = 1;
  double gradient_scale = 1;
  bool skipped = false;  // weights and state stay as they are
};

// Where a GPU finds them. Null: there is nothing to be read.
struct StepOnDevice {
  const StepScalars* scalars = nullptr;   // learning rate and gradient scale are multiplied by its
  const std::int64_t* updates = nullptr;  // the number of the update, instead of the step's
};

// Sums of squares of a parameter's weights, or of some of them, and of what LAMB and LARS compare with them: of doubles alone,
// a group can reduce it.
struct UpdateSquares {
  double weight = 0;
  double update = 0;
};

}  // namespace ops
}  // namespace trireme
