#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct AdadeltaStep {
  double learning_rate = 1;
  double smoothing = 0.9;
  double epsilon = 1e-6;
  double weight_decay = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Zeiler 2012, arXiv 1212.5701, as torch.optim.Adadelta: w -= lr * u with u = g * sqrt(mean of u^2 + eps) / sqrt(mean of g^2 +
// eps).
template <typename T>
struct AdadeltaUpdate {
  using Step = AdadeltaStep;
  using Planes = ops::Planes<const T, T, T, T>;

  T gradient_scale;
  T weight_decay;
  T smoothing;
  T one_minus_smoothing;
  T epsilon;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit AdadeltaUpdate(const AdadeltaStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        smoothing(static_cast<T>(step.smoothing)),
        one_minus_smoothing(static_cast<T>(1 - step.smoothing)),
        epsilon(static_cast<T>(step.epsilon)),
        learning_rate(static_cast<T>(step.learning_rate)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average, T& update_average) const {
    const T g = gradient_scale * gradient + weight_decay * weight;
    const T squares = smoothing * square_average + one_minus_smoothing * (g * g);
    square_average = squares;
    const T updates = update_average;
    const T update = math::square_root(updates + epsilon) / math::square_root(squares + epsilon) * g;
    update_average = smoothing * updates + one_minus_smoothing * (update * update);
    weight -= learning_rate * update;
  }
};

}  // namespace ops
}  // namespace trireme
