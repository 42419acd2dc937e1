#pragma once

#include <limits>

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

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
  const UpdateSquares* squares = nullptr;  // of the whole parameter, for the trust ratio |w| / |u|; null: the ratio is 1
  StepOnDevice on_device = {};
};

// The factor by which the parameter's learning rate is multiplied; 1 if a norm is 0.
TRIREME_HOST_DEVICE double trust_ratio(const LambStep& step) {
  if (step.squares == nullptr) return 1;
  const double norm = std::sqrt(step.squares->weight);
  const double weight = norm < step.min_norm ? step.min_norm : norm > step.max_norm ? step.max_norm : norm;
  const double update = std::sqrt(step.squares->update);
  const double ratio = weight > 0 && update > 0 ? weight / update : 1;
  return ratio > step.max_trust_ratio ? step.max_trust_ratio : ratio;
}

// You et al. 2020, arXiv 1904.00962, in two passes. First, lamb_moments (ops/update/optimizer.hpp) updates the moments and
// measures u = m_hat / (sqrt(v_hat) + eps) + weight_decay * w; then w -= lr * |w| / |u| * u.
template <typename T>
struct LambUpdate {
  using Step = LambStep;
  using Planes = ops::Planes<const T, const T, T>;

  T gradient_scale;
  Moments<T> moments;
  T inverse_bias_correction1;
  T inverse_root_bias_correction2;
  T epsilon;
  T weight_decay;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LambUpdate(const LambStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        moments(step),
        inverse_bias_correction1(static_cast<T>(1 / (step.corrects_bias ? bias_correction(step.beta1, step.update) : 1))),
        inverse_root_bias_correction2(
            static_cast<T>(1 / std::sqrt(step.corrects_bias ? bias_correction(step.beta2, step.update) : 1))),
        epsilon(static_cast<T>(step.epsilon)),
        weight_decay(static_cast<T>(step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate * trust_ratio(step))) {}

  TRIREME_HOST_DEVICE T update(T weight, T first, T second) const {
    return first * inverse_bias_correction1 / (math::square_root(second) * inverse_root_bias_correction2 + epsilon) +
           weight_decay * weight;
  }
  // Updates the moments and returns the update u, for UpdateSquares.
  TRIREME_HOST_DEVICE T measured(const T& gradient, const T& weight, T& first_moment, T& second_moment) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient, first, second);
    first_moment = first;
    second_moment = second;
    return update(weight, first, second);
  }
  TRIREME_HOST_DEVICE void operator()(const T& first_moment, const T& second_moment, T& weight) const {
    weight -= learning_rate * update(weight, first_moment, second_moment);
  }
};

}  // namespace ops
}  // namespace trireme
