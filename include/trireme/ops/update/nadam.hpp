#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct NadamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 0.004;
  bool decoupled = false;  // as in AdamStep
  std::int64_t update = 1;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// The momentum of update number `update`, from 1. It rises to beta1.
TRIREME_HOST_DEVICE double momentum_of(const NadamStep& step, std::int64_t update) {
  return step.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(update) * step.momentum_decay));
}

// The product of the momenta of all updates so far. The loop stops when the product is so small that 1 - product rounds to 1.
TRIREME_HOST_DEVICE double momentum_product(const NadamStep& step) {
  const double factor = std::pow(0.96, step.momentum_decay);
  double power = 1;
  double product = 1;
  for (std::int64_t update = 1; update <= step.update && product > 1e-17; ++update) {
    power *= factor;
    product *= step.beta1 * (1 - 0.5 * power);
  }
  return product;
}

// Dozat 2016, "Incorporating Nesterov Momentum into Adam", as torch.optim.NAdam: Adam's step with the momentum of the next
// update.
template <typename T>
struct NadamUpdate {
  using Step = NadamStep;
  using Planes = ops::Planes<const T, T, T, T>;

  T gradient_scale;
  T gradient_decay;  // weight decay that is added to the gradient
  Moments<T> moments;
  T weight_factor;  // 1 - learning_rate * weight_decay if decoupled, else 1
  T gradient_rate;  // the learning rates of the gradient and of the first moment
  T moment_rate;
  T inverse_root_bias_correction2;
  T epsilon;

  TRIREME_HOST_DEVICE explicit NadamUpdate(const NadamStep& step) : NadamUpdate(step, momentum_product(step)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& first_moment, T& second_moment) const {
    const T g = gradient_scale * gradient + gradient_decay * weight;
    T first = first_moment;
    T second = second_moment;
    moments.move(g, first, second);
    first_moment = first;
    second_moment = second;
    weight = weight_factor * weight -
             (gradient_rate * g + moment_rate * first) / (math::square_root(second) * inverse_root_bias_correction2 + epsilon);
  }

 private:
  TRIREME_HOST_DEVICE NadamUpdate(const NadamStep& step, double product)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        gradient_decay(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        moments(step),
        weight_factor(static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1)),
        gradient_rate(static_cast<T>(step.learning_rate * (1 - momentum_of(step, step.update)) / (1 - product))),
        moment_rate(static_cast<T>(step.learning_rate * momentum_of(step, step.update + 1) /
                                   (1 - product * momentum_of(step, step.update + 1)))),
        inverse_root_bias_correction2(static_cast<T>(1 / std::sqrt(bias_correction(step.beta2, step.update)))),
        epsilon(static_cast<T>(step.epsilon)) {}
};

}  // namespace ops
}  // namespace trireme
