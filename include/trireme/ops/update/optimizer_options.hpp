#pragma once

#include <cstdint>
#include <limits>

// What a pass of an optimizer (ops/optimizer.hpp) is told of the step.
namespace trireme::ops {

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

struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;   // weight decay apart from the moments, as AdamW; otherwise added to the gradient
  std::int64_t update = 1;  // how often these elements were updated, this time included
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  std::int64_t update = 1;  // the first one starts the momentum buffer as the gradient, as torch.optim.SGD
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

struct RmspropStep {
  double learning_rate = 0;
  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

struct AdagradStep {
  double learning_rate = 0;
  double learning_rate_decay = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  std::int64_t update = 1;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

struct LionStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Sums of squares of a parameter's weights, or of some of them, and of what LAMB and LARS compare with them: of doubles alone,
// a group can reduce it.
struct UpdateSquares {
  double weight = 0;
  double update = 0;
};

struct LambStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  bool corrects_bias = true;  // of the moments
  std::int64_t update = 1;
  double gradient_scale = 1;
  double min_norm = 0;  // |w| is clamped to [min_norm, max_norm]
  double max_norm = std::numeric_limits<double>::infinity();
  double max_trust_ratio = std::numeric_limits<double>::infinity();  // of |w| / |u|
  const UpdateSquares* squares = nullptr;  // of the whole parameter: the rate is multiplied by |w| / |u|; null: it is not
  StepOnDevice on_device = {};
};

struct LarsStep {
  double learning_rate = 0;
  double momentum = 0.9;
  double weight_decay = 0;
  double gradient_scale = 1;
  double trust = 0.001;
  const UpdateSquares* squares = nullptr;  // likewise, by trust * |w| / (|g| + weight_decay * |w|)
  StepOnDevice on_device = {};
};

struct ClipStep {
  double limit = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

}  // namespace trireme::ops
