#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct RmspropStep {
  double learning_rate = 0;
  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// As torch.optim.RMSprop. `average` (of the gradients) is null unless centered. The momentum buffer is null if the momentum is
// 0.
template <typename T>
struct RmspropUpdate {
  using Step = RmspropStep;
  using Planes = ops::Planes<const T, T, T, Optional<T>, Optional<T>>;

  T gradient_scale;
  T weight_decay;
  T smoothing;
  T one_minus_smoothing;
  T epsilon;
  T momentum;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit RmspropUpdate(const RmspropStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        smoothing(static_cast<T>(step.smoothing)),
        one_minus_smoothing(static_cast<T>(1 - step.smoothing)),
        epsilon(static_cast<T>(step.epsilon)),
        momentum(static_cast<T>(step.momentum)),
        learning_rate(static_cast<T>(step.learning_rate)) {}

  static const char* lacking(const RmspropStep& step, const Planes& planes) {
    return step.momentum != 0 && planes.template plane<4>() == nullptr ? "a momentum buffer" : nullptr;
  }

  template <typename Average, typename Buffer>
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average, Average& average, Buffer& buffer) const {
    const T g = gradient_scale * gradient + weight_decay * weight;
    if constexpr (is_kept<Buffer>) {
      buffer = momentum * buffer + direction(g, square_average, average);
      weight -= learning_rate * buffer;
    } else {
      weight -= learning_rate * direction(g, square_average, average);
    }
  }

 private:
  template <typename Average>
  TRIREME_HOST_DEVICE T direction(T g, T& square_average, Average& average) const {
    square_average = smoothing * square_average + one_minus_smoothing * (g * g);
    T variance = square_average;
    if constexpr (is_kept<Average>) {
      average = smoothing * average + one_minus_smoothing * g;
      const T centered = variance - average * average;
      variance = centered < T(0) ? T(0) : centered;  // rounding may make the difference negative
    }
    return g / (math::square_root(variance) + epsilon);
  }
};

}  // namespace ops
}  // namespace trireme
