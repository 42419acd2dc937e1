#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct RadamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // as in AdamStep
  std::int64_t update = 1;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// The factor that rectifies the variance of the adaptive step; 0 as long as there are too few updates to estimate the second
// moment.
TRIREME_HOST_DEVICE double rectification(double beta2, std::int64_t update) {
  const auto updates = static_cast<double>(update);
  const double limit = 2 / (1 - beta2) - 1;
  const double length = limit - 2 * updates * std::pow(beta2, updates) / bias_correction(beta2, update);
  if (!(length > 5)) return 0;
  return std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
}

// Liu et al. 2020, arXiv 1908.03265, as torch.optim.RAdam: Adam's step times the rectification. If the rectification is 0, the
// step uses only the first moment.
template <typename T>
struct RadamUpdate {
  using Step = RadamStep;
  using Planes = ops::Planes<const T, T, T, T>;

  T gradient_scale;
  T gradient_decay;  // weight decay that is added to the gradient
  Moments<T> moments;
  T weight_factor;  // 1 - learning_rate * weight_decay if decoupled, else 1
  bool adapts;      // the second moment divides the step
  T step_size;      // learning_rate / bias_correction1, times the rectification if the step adapts
  T epsilon;

  TRIREME_HOST_DEVICE explicit RadamUpdate(const RadamStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        gradient_decay(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        moments(step),
        weight_factor(static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1)),
        adapts(rectification(step.beta2, step.update) > 0),
        step_size(static_cast<T>(
            step.learning_rate / bias_correction(step.beta1, step.update) *
            (adapts ? rectification(step.beta2, step.update) * std::sqrt(bias_correction(step.beta2, step.update)) : 1))),
        epsilon(static_cast<T>(step.epsilon)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& first_moment, T& second_moment) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient + gradient_decay * weight, first, second);
    first_moment = first;
    second_moment = second;
    const T divisor = adapts ? math::square_root(second) + epsilon : T(1);
    weight = weight_factor * weight - step_size * first / divisor;
  }
};

}  // namespace ops
}  // namespace trireme
