#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct LarsStep {
  double learning_rate = 0;
  double momentum = 0.9;
  double weight_decay = 0;
  double gradient_scale = 1;
  double trust = 0.001;
  const UpdateSquares* squares = nullptr;  // as in LambStep; the ratio is trust * |w| / (|g| + weight_decay * |w|)
  StepOnDevice on_device = {};
};

// The factor by which the parameter's learning rate is multiplied; 1 if a norm is 0.
TRIREME_HOST_DEVICE double trust_ratio(const LarsStep& step) {
  if (step.squares == nullptr) return 1;
  const double weight = std::sqrt(step.squares->weight);
  const double gradient = std::sqrt(step.gradient_scale * step.gradient_scale * step.squares->update);
  return weight > 0 && gradient > 0 ? step.trust * weight / (gradient + step.weight_decay * weight) : 1;
}

// You, Gitman, Ginsburg 2017, arXiv 1708.03888, in two passes. The first is lars_squares (ops/update/optimizer.hpp). The
// second is v = momentum * v + lr * local rate * (g + weight_decay * w); w -= v.
template <typename T>
struct LarsUpdate {
  using Step = LarsStep;
  using Planes = ops::Planes<const T, T, T>;

  T gradient_scale;
  T momentum;
  T weight_decay;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LarsUpdate(const LarsStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        momentum(static_cast<T>(step.momentum)),
        weight_decay(static_cast<T>(step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate * trust_ratio(step))) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& buffer) const {
    const T velocity = momentum * buffer + learning_rate * (gradient_scale * gradient + weight_decay * weight);
    buffer = velocity;
    weight -= velocity;
  }
};

}  // namespace ops
}  // namespace trireme
