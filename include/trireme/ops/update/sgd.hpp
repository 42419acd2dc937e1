#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  std::int64_t update = 1;  // number of this update; update 1 sets the momentum buffer to the gradient, as torch.optim.SGD
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// As torch.optim.SGD. The momentum buffer is null if the momentum is 0.
template <typename T>
struct SgdUpdate {
  using Step = SgdStep;
  using Planes = ops::Planes<const T, T, Optional<T>>;

  T gradient_scale;
  T weight_decay;
  T momentum;
  T one_minus_dampening;
  T learning_rate;
  bool nesterov;
  bool first;

  TRIREME_HOST_DEVICE explicit SgdUpdate(const SgdStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        momentum(static_cast<T>(step.momentum)),
        one_minus_dampening(static_cast<T>(1 - step.dampening)),
        learning_rate(static_cast<T>(step.learning_rate)),
        nesterov(step.nesterov),
        first(step.update == 1) {}

  static const char* lacking(const SgdStep& step, const Planes& planes) {
    return step.momentum != 0 && planes.template plane<2>() == nullptr ? "a momentum buffer" : nullptr;
  }

  template <typename Buffer>
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, Buffer& buffer) const {
    const T direction = gradient_scale * gradient + weight_decay * weight;
    if constexpr (is_kept<Buffer>) {
      const T velocity = first ? direction : momentum * buffer + one_minus_dampening * direction;
      buffer = velocity;
      weight -= learning_rate * (nesterov ? direction + momentum * velocity : velocity);
    } else {
      weight -= learning_rate * direction;
    }
  }
};

}  // namespace ops
}  // namespace trireme
