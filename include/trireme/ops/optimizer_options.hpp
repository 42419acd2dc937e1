#pragma once

// What a pass of an optimizer (ops/optimizer.hpp) is told of the step.
namespace trireme::ops {

struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;       // weight decay apart from the moments, as AdamW; otherwise added to the gradient
  double bias_correction1 = 1;  // 1 - beta1^step
  double bias_correction2 = 1;  // 1 - beta2^step
  double gradient_scale = 1;
};

struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the momentum buffer starts as the gradient, as torch.optim.SGD
  double gradient_scale = 1;
};

struct RmspropStep {
  double learning_rate = 0;
  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  double gradient_scale = 1;
};

struct AdagradStep {
  double learning_rate = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  double gradient_scale = 1;
};

struct LionStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  double gradient_scale = 1;
};

// Sums of squares of a range's weights and of its update.
struct UpdateSquares {
  double weight = 0;
  double update = 0;
};

struct LambStep {
  double learning_rate = 0;  // times the trust ratio
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  double bias_correction1 = 1;
  double bias_correction2 = 1;
  double gradient_scale = 1;
};

struct LarsStep {
  double learning_rate = 0;  // times the local rate
  double momentum = 0.9;
  double weight_decay = 0;
  double gradient_scale = 1;
};

}  // namespace trireme::ops
