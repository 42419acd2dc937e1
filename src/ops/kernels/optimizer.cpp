#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

TRIREME_HOST_DEVICE float square_root(float x) { return __builtin_sqrtf(x); }
TRIREME_HOST_DEVICE double square_root(double x) { return __builtin_sqrt(x); }

template <typename T>
void adamw(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWStep& step) {
  const auto beta1 = static_cast<T>(step.beta1);
  const auto beta2 = static_cast<T>(step.beta2);
  const auto rest1 = static_cast<T>(1 - step.beta1);
  const auto rest2 = static_cast<T>(1 - step.beta2);
  const auto keep = static_cast<T>(1 - step.learning_rate * step.weight_decay);
  const auto rate = static_cast<T>(step.learning_rate / step.bias_correction1);
  const auto inverse_root2 = static_cast<T>(1 / __builtin_sqrt(step.bias_correction2));
  const auto epsilon = static_cast<T>(step.epsilon);
  const auto scale = static_cast<T>(step.gradient_scale);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = scale * gradient[i];
    const T m = beta1 * first_moment[i] + rest1 * g;
    const T v = beta2 * second_moment[i] + rest2 * g * g;
    first_moment[i] = m;
    second_moment[i] = v;
    weight[i] = keep * weight[i] - rate * m / (square_root(v) * inverse_root2 + epsilon);
  }
}

template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step) {
  const auto rate = static_cast<T>(step.learning_rate);
  const auto decay = static_cast<T>(step.weight_decay);
  const auto scale = static_cast<T>(step.gradient_scale);
  if (momentum == nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) weight[i] -= rate * (scale * gradient[i] + decay * weight[i]);
    return;
  }
  const auto kept = static_cast<T>(step.first ? 0 : step.momentum);
  const auto added = static_cast<T>(step.first ? 1 : 1 - step.dampening);
  const auto ahead = static_cast<T>(step.momentum);
  const T own = step.nesterov ? T(1) : T(0);
  const T of_buffer = step.nesterov ? ahead : T(1);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = scale * gradient[i] + decay * weight[i];
    const T buffer = kept * momentum[i] + added * g;
    momentum[i] = buffer;
    weight[i] -= rate * (own * g + of_buffer * buffer);
  }
}

}  // namespace

extern const Optimizer<float> optimizer_f32{adamw<float>, sgd<float>};
extern const Optimizer<double> optimizer_f64{adamw<double>, sgd<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
