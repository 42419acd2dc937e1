#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Adafactor's passes over a parameter (Shazeer, Stern 2018, arXiv 1804.04235), as in torch.optim.Adafactor. They compute the
// scaled gradient, the running means of its squares, the second moment estimated from these means, and the step.

struct AdafactorGradientStep {
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

template <typename T>
struct AdafactorGradientUpdate {
  using Step = AdafactorGradientStep;
  using Planes = ops::Planes<const T, T>;

  T gradient_scale;

  TRIREME_HOST_DEVICE explicit AdafactorGradientUpdate(const AdafactorGradientStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& g) const { g = gradient_scale * gradient; }
};

struct AdafactorSquareStep {};

template <typename T>
struct AdafactorSquareUpdate {
  using Step = AdafactorSquareStep;
  using Planes = ops::Planes<const T, T>;

  TRIREME_HOST_DEVICE explicit AdafactorSquareUpdate(const AdafactorSquareStep&) {}

  TRIREME_HOST_DEVICE void operator()(const T& x, T& y) const { y = x * x; }
};

struct AdafactorMeanStep {
  double factor = 1;          // of the sum: 1 / the number of summands
  double beta2_decay = -0.8;  // the weight of the newest mean is update^beta2_decay
  std::int64_t update = 1;
  StepOnDevice on_device = {};
};

template <typename T>
struct AdafactorMeanUpdate {
  using Step = AdafactorMeanStep;
  using Planes = ops::Planes<const T, T>;

  T factor;
  T share;

  TRIREME_HOST_DEVICE explicit AdafactorMeanUpdate(const AdafactorMeanStep& step)
      : factor(static_cast<T>(step.factor)),
        share(static_cast<T>(std::pow(static_cast<double>(step.update), step.beta2_decay))) {}

  TRIREME_HOST_DEVICE void operator()(const T& sum, T& average) const { average += share * (factor * sum - average); }
};

struct AdafactorQuotientStep {
  double factor = 1;    // of the sum: 1 / the number of summands
  double smallest = 0;  // lower bound of the divisor
};

// sum = average / max(factor * sum, smallest).
template <typename T>
struct AdafactorQuotientUpdate {
  using Step = AdafactorQuotientStep;
  using Planes = ops::Planes<const T, T>;

  T factor;
  T smallest;

  TRIREME_HOST_DEVICE explicit AdafactorQuotientUpdate(const AdafactorQuotientStep& step)
      : factor(static_cast<T>(step.factor)), smallest(static_cast<T>(step.smallest)) {}

  TRIREME_HOST_DEVICE void operator()(const T& average, T& sum) const {
    const T mean = factor * sum;
    sum = average / (mean > smallest ? mean : smallest);
  }
};

struct AdafactorDirectionStep {
  double epsilon = 0;  // lower bound of the divisor
};

// second_moment = g / max(sqrt(second_moment), epsilon).
template <typename T>
struct AdafactorDirectionUpdate {
  using Step = AdafactorDirectionStep;
  using Planes = ops::Planes<const T, T>;

  T epsilon;

  TRIREME_HOST_DEVICE explicit AdafactorDirectionUpdate(const AdafactorDirectionStep& step)
      : epsilon(static_cast<T>(step.epsilon)) {}

  TRIREME_HOST_DEVICE void operator()(const T& g, T& second_moment) const {
    const T root = math::square_root(second_moment);
    second_moment = g / (root > epsilon ? root : epsilon);
  }
};

struct AdafactorStep {
  double learning_rate = 0;
  double weight_decay = 0;
  double epsilon = 1e-3;  // lower bound of the root mean square of the weights
  double clip = 1;        // upper bound of the root mean square of the direction
  bool adapts = true;     // the rate is relative to the root mean square of the weights
  double count = 1;       // elements of the parameter
  std::int64_t update = 1;
  const UpdateSquares* squares = nullptr;  // of all weights of the parameter, and of the direction
  StepOnDevice on_device = {};
};

// The factor by which the direction is multiplied.
TRIREME_HOST_DEVICE double adafactor_rate(const AdafactorStep& step) {
  const double falling = 1 / std::sqrt(static_cast<double>(step.update));
  const double relative = step.learning_rate < falling ? step.learning_rate : falling;
  const double weights = std::sqrt(step.squares->weight / step.count);
  const double size = !step.adapts ? 1 : weights > step.epsilon ? weights : step.epsilon;
  const double excess = std::sqrt(step.squares->update / step.count) / step.clip;
  return size * relative / (excess > 1 ? excess : 1);
}

// w -= lr * weight_decay * w + max(epsilon, rms(w)) * min(lr, 1 / sqrt(update)) * u / max(1, rms(u) / clip).
template <typename T>
struct AdafactorUpdate {
  using Step = AdafactorStep;
  using Planes = ops::Planes<const T, T>;

  T weight_factor;  // 1 - learning_rate * weight_decay
  T rate;

  TRIREME_HOST_DEVICE explicit AdafactorUpdate(const AdafactorStep& step)
      : weight_factor(static_cast<T>(1 - step.learning_rate * step.weight_decay)), rate(static_cast<T>(adafactor_rate(step))) {}

  TRIREME_HOST_DEVICE void operator()(const T& direction, T& weight) const {
    weight = weight_factor * weight - rate * direction;
  }
};

}  // namespace ops
}  // namespace trireme
