#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct AdagradStep {
  double learning_rate = 0;
  double learning_rate_decay = 0;
  double epsilon = 1e-10;
  double weight_decay = 0;
  std::int64_t update = 1;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Duchi, Hazan, Singer 2011: w -= lr * g / (sqrt(sum of g^2) + eps), as torch.optim.Adagrad.
template <typename T>
struct AdagradUpdate {
  using Step = AdagradStep;
  using Planes = ops::Planes<const T, T, T>;

  T gradient_scale;
  T weight_decay;
  T epsilon;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit AdagradUpdate(const AdagradStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        epsilon(static_cast<T>(step.epsilon)),
        learning_rate(
            static_cast<T>(step.learning_rate / (1 + static_cast<double>(step.update - 1) * step.learning_rate_decay))) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& sum_of_squares) const {
    const T g = gradient_scale * gradient + weight_decay * weight;
    const T sum = sum_of_squares + g * g;
    sum_of_squares = sum;
    weight -= learning_rate * g / (math::square_root(sum) + epsilon);
  }
};

}  // namespace ops
}  // namespace trireme
