#include "ops/kernels/optimizer.hpp"

#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void adamw(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWScalars<T>& scalars) {
  const AdamWScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i];
    const T m = s.beta1 * first_moment[i] + s.one_minus_beta1 * g;
    const T v = s.beta2 * second_moment[i] + s.one_minus_beta2 * (g * g);
    first_moment[i] = m;
    second_moment[i] = v;
    weight[i] =
        s.weight_factor * weight[i] - s.step_size * m / (math::square_root(v) * s.inverse_root_bias_correction2 + s.epsilon);
  }
}

template <typename T>
void sgd(T* weight, const T* gradient, std::size_t count, const SgdScalars<T>& scalars) {
  const SgdScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    weight[i] -= s.learning_rate * (s.gradient_scale * gradient[i] + s.weight_decay * weight[i]);
  }
}

template <typename T>
void sgd_momentum(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdScalars<T>& scalars, bool nesterov,
                  bool first) {
  const SgdScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i] + s.weight_decay * weight[i];
    const T velocity = first ? g : s.momentum * momentum[i] + s.one_minus_dampening * g;
    momentum[i] = velocity;
    weight[i] -= s.learning_rate * (nesterov ? g + s.momentum * velocity : velocity);
  }
}

template <typename T>
constexpr OptimizerKernels<T> kernels{adamw<T>, sgd<T>, sgd_momentum<T>};

}  // namespace

const KernelTable<OptimizerKernels> optimizer_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
