#include "trireme/ops/optimizer.hpp"

#include <cmath>
#include <limits>

#include "ops/block_sums.hpp"
#include "ops/kernels/optimizer.hpp"
#include "trireme/core/error.hpp"

namespace trireme::ops {

template <typename T>
void adamw(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count, const AdamWStep& step, Cpu) {
  const AdamWScalars<T> scalars{
      .gradient_scale = static_cast<T>(step.gradient_scale),
      .beta1 = static_cast<T>(step.beta1),
      .one_minus_beta1 = static_cast<T>(1 - step.beta1),
      .beta2 = static_cast<T>(step.beta2),
      .one_minus_beta2 = static_cast<T>(1 - step.beta2),
      .weight_factor = static_cast<T>(1 - step.learning_rate * step.weight_decay),
      .step_size = static_cast<T>(step.learning_rate / step.bias_correction1),
      .inverse_root_bias_correction2 = static_cast<T>(1 / std::sqrt(step.bias_correction2)),
      .epsilon = static_cast<T>(step.epsilon),
  };
  const auto& kernels = optimizer_kernels().of<T>();
  parallel_elements(static_cast<std::int64_t>(count), [&](std::int64_t begin, std::int64_t end) {
    kernels.adamw(weight + begin, gradient + begin, first_moment + begin, second_moment + begin,
                  static_cast<std::size_t>(end - begin), scalars);
  });
}

template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, Cpu) {
  require(step.momentum == 0 || momentum != nullptr, "sgd: a momentum of {} needs a momentum buffer", step.momentum);
  const SgdScalars<T> scalars{
      .gradient_scale = static_cast<T>(step.gradient_scale),
      .weight_decay = static_cast<T>(step.weight_decay),
      .momentum = static_cast<T>(step.momentum),
      .one_minus_dampening = static_cast<T>(1 - step.dampening),
      .learning_rate = static_cast<T>(step.learning_rate),
  };
  const auto& kernels = optimizer_kernels().of<T>();
  parallel_elements(static_cast<std::int64_t>(count), [&](std::int64_t begin, std::int64_t end) {
    const auto part = static_cast<std::size_t>(end - begin);
    if (step.momentum == 0) {
      kernels.sgd(weight + begin, gradient + begin, part, scalars);
    } else {
      kernels.sgd_momentum(weight + begin, gradient + begin, momentum + begin, part, scalars, step.nesterov, step.first);
    }
  });
}

template <typename T>
GradientNorms gradient_norms(const T* gradient, std::size_t count, Cpu) {
  const auto& kernels = reduce_kernels().of<T>();
  auto norms = combine_blocks<GradientNorms>(
      static_cast<std::int64_t>(count),
      [&](std::int64_t begin, std::int64_t part) {
        return GradientNorms{.sum_of_squares = kernels.sum_of_squares(gradient + begin, part),
                             .max_abs = kernels.max_abs(gradient + begin, part)};
      },
      [](const GradientNorms& a, const GradientNorms& b) {
        return GradientNorms{.sum_of_squares = a.sum_of_squares + b.sum_of_squares, .max_abs = std::max(a.max_abs, b.max_abs)};
      });
  if (std::isnan(norms.sum_of_squares)) norms.max_abs = std::numeric_limits<double>::quiet_NaN();
  return norms;
}

#define TRIREME_INSTANTIATE(T)                                                   \
  template void adamw(T*, const T*, T*, T*, std::size_t, const AdamWStep&, Cpu); \
  template void sgd(T*, const T*, T*, std::size_t, const SgdStep&, Cpu);         \
  template GradientNorms gradient_norms(const T*, std::size_t, Cpu);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
