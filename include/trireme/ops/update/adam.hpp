#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/update/formula.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;   // true: weight decay does not enter the moments, as in AdamW; false: it is added to the gradient
  std::int64_t update = 1;  // number of updates of these elements, this one included
  double gradient_scale = 1;
  StepOnDevice on_device = {};
};

// Kingma, Ba 2015, arXiv 1412.6980, and Loshchilov, Hutter 2019, arXiv 1711.05101: w -= lr * m_hat / (sqrt(v_hat) + eps), as
// torch.optim.Adam and AdamW. With AMSGrad (Reddi et al. 2018, arXiv 1904.09237) v_hat uses the largest v so far, which is kept
// in `largest`; without AMSGrad the plane `largest` is null.
template <typename T>
struct AdamUpdate {
  using Step = AdamStep;
  using Planes = ops::Planes<const T, T, T, T, Optional<T>>;

  T gradient_scale;
  T gradient_decay;  // weight decay that is added to the gradient
  Moments<T> moments;
  T weight_factor;                  // 1 - learning_rate * weight_decay if decoupled, else 1
  T step_size;                      // learning_rate / bias_correction1
  T inverse_root_bias_correction2;  // 1 / sqrt(bias_correction2)
  T epsilon;

  TRIREME_HOST_DEVICE explicit AdamUpdate(const AdamStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        gradient_decay(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        moments(step),
        weight_factor(static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1)),
        step_size(static_cast<T>(step.learning_rate / bias_correction(step.beta1, step.update))),
        inverse_root_bias_correction2(static_cast<T>(1 / std::sqrt(bias_correction(step.beta2, step.update)))),
        epsilon(static_cast<T>(step.epsilon)) {}

  template <typename Largest>
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& first_moment, T& second_moment, Largest& largest) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient + gradient_decay * weight, first, second);
    first_moment = first;
    second_moment = second;
    if constexpr (is_kept<Largest>) {
      second = largest > second ? largest : second;
      largest = second;
    }
    weight = weight_factor * weight - step_size * first / (math::square_root(second) * inverse_root_bias_correction2 + epsilon);
  }
};

}  // namespace ops
}  // namespace trireme
