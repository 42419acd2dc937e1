#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ScheduleFreeAdamWStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t warmup = 0;  // updates
  std::int64_t update = 1;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// The fraction of the learning rate that this update uses: it rises linearly during the warmup.
TRIREME_HOST_DEVICE double warmed_up(const ScheduleFreeAdamWStep& step) {
  return step.update < step.warmup ? static_cast<double>(step.update) / static_cast<double>(step.warmup) : 1;
}

// The weight of this update in the average. It is the update's squared learning rate, divided by the sum of the squared
// learning rates of all updates so far.
TRIREME_HOST_DEVICE double share_of_average(const ScheduleFreeAdamWStep& step) {
  const auto rising = static_cast<double>(step.update < step.warmup ? step.update : step.warmup);
  const auto warmup = static_cast<double>(step.warmup > 0 ? step.warmup : 1);
  const double of_rising = rising * (rising + 1) * (2 * rising + 1) / (6 * warmup * warmup);
  const double share = warmed_up(step);
  return share * share / (of_rising + static_cast<double>(step.update) - rising);
}

// Defazio et al. 2024, arXiv 2405.15682, algorithm 1: z takes AdamW's steps without momentum, x is the average of z, and
// gradients are computed at y = (1 - beta1) * z + beta1 * x. The weights are y, and the plane `offset` is z - y, so x = y - (1
// / beta1 - 1) * (z - y).
template <typename T>
struct ScheduleFreeAdamWUpdate {
  using Step = ScheduleFreeAdamWStep;
  using Planes = ops::Planes<const T, T, T, T>;

  T gradient_scale;
  T beta2;
  T one_minus_beta2;
  T inverse_root_bias_correction2;
  T epsilon;
  T weight_decay;
  T share;  // of z in the average
  T one_minus_share;
  T rate;           // of y
  T momentum_rate;  // of z - y

  TRIREME_HOST_DEVICE explicit ScheduleFreeAdamWUpdate(const ScheduleFreeAdamWStep& step)
      : ScheduleFreeAdamWUpdate(step, step.learning_rate * warmed_up(step), share_of_average(step)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& offset, T& second_moment) const {
    const T g = gradient_scale * gradient;
    const T second = beta2 * second_moment + one_minus_beta2 * (g * g);
    second_moment = second;
    const T old = weight;
    const T ahead = offset;
    const T update = g / (math::square_root(second) * inverse_root_bias_correction2 + epsilon) + weight_decay * old;
    weight = old + share * ahead - rate * update;
    offset = one_minus_share * (ahead - momentum_rate * update);
  }

 private:
  TRIREME_HOST_DEVICE ScheduleFreeAdamWUpdate(const ScheduleFreeAdamWStep& step, double learning_rate, double share_of_z)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        beta2(static_cast<T>(step.beta2)),
        one_minus_beta2(static_cast<T>(1 - step.beta2)),
        inverse_root_bias_correction2(static_cast<T>(1 / std::sqrt(bias_correction(step.beta2, step.update)))),
        epsilon(static_cast<T>(step.epsilon)),
        weight_decay(static_cast<T>(step.weight_decay)),
        share(static_cast<T>(share_of_z)),
        one_minus_share(static_cast<T>(1 - share_of_z)),
        rate(static_cast<T>(learning_rate * (1 - step.beta1 * (1 - share_of_z)))),
        momentum_rate(static_cast<T>(learning_rate * step.beta1)) {}
};

}  // namespace ops
}  // namespace trireme
