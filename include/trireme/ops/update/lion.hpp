#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct LionStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Chen et al. 2023, arXiv 2302.06675: w -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w), then m = beta2 * m + (1
// - beta2) * g.
template <typename T>
struct LionUpdate {
  using Step = LionStep;
  using Planes = ops::Planes<const T, T, T>;

  T gradient_scale;
  Moments<T> moments;
  T weight_factor;  // 1 - learning_rate * weight_decay
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LionUpdate(const LionStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        moments(step),
        weight_factor(static_cast<T>(1 - step.learning_rate * step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& momentum) const {
    const T g = gradient_scale * gradient;
    const T direction = moments.beta1 * momentum + moments.one_minus_beta1 * g;
    const T rate = direction > T(0) ? learning_rate : -learning_rate;
    momentum = moments.beta2 * momentum + moments.one_minus_beta2 * g;
    weight = weight_factor * weight - (direction == T(0) ? T(0) : rate);
  }
};

}  // namespace ops
}  // namespace trireme
