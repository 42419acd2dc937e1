#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Muon's passes over a matrix (Jordan et al. 2024), as in torch.optim.Muon. The momentum gives a direction, Newton-Schulz
// iterations make the direction's singular values about 1, and the weights take a step along the direction.

struct MuonMomentumStep {
  double momentum = 0.95;
  bool nesterov = true;
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// buffer = momentum * buffer + (1 - momentum) * g. The direction is the buffer, or momentum * buffer + (1 - momentum) * g with
// Nesterov's momentum.
template <typename T>
struct MuonMomentumUpdate {
  using Step = MuonMomentumStep;
  using Planes = ops::Planes<const T, T, T>;

  T gradient_scale;
  T momentum;
  T one_minus_momentum;
  bool nesterov;

  TRIREME_HOST_DEVICE explicit MuonMomentumUpdate(const MuonMomentumStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        momentum(static_cast<T>(step.momentum)),
        one_minus_momentum(static_cast<T>(1 - step.momentum)),
        nesterov(step.nesterov) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& buffer, T& direction) const {
    const T g = gradient_scale * gradient;
    const T moved = momentum * buffer + one_minus_momentum * g;
    buffer = moved;
    direction = nesterov ? momentum * moved + one_minus_momentum * g : moved;
  }
};

struct UnitNormStep {
  const UpdateSquares* squares = nullptr;  // squares->update is the sum over all elements
  double epsilon = 1e-7;                   // lower bound of the norm
};

// x /= |x|.
template <typename T>
struct UnitNormUpdate {
  using Step = UnitNormStep;
  using Planes = ops::Planes<T>;

  T factor;

  TRIREME_HOST_DEVICE explicit UnitNormUpdate(const UnitNormStep& step) {
    const double norm = std::sqrt(step.squares->update);
    factor = static_cast<T>(1 / (norm > step.epsilon ? norm : step.epsilon));
  }

  TRIREME_HOST_DEVICE void operator()(T& x) const { x *= factor; }
};

struct MuonStep {
  double learning_rate = 0;
  double weight_decay = 0;
  double scale = 1;  // of the direction
  StepOnDevice on_device = {};
};

// w -= lr * (scale * direction + weight_decay * w).
template <typename T>
struct MuonUpdate {
  using Step = MuonStep;
  using Planes = ops::Planes<const T, T>;

  T weight_factor;  // 1 - learning_rate * weight_decay
  T rate;

  TRIREME_HOST_DEVICE explicit MuonUpdate(const MuonStep& step)
      : weight_factor(static_cast<T>(1 - step.learning_rate * step.weight_decay)),
        rate(static_cast<T>(step.learning_rate * step.scale)) {}

  TRIREME_HOST_DEVICE void operator()(const T& direction, T& weight) const {
    weight = weight_factor * weight - rate * direction;
  }
};

}  // namespace ops
}  // namespace trireme
