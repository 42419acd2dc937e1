#pragma once

#include <cstddef>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

// The scalars of a step, rounded to the element type once.
template <typename T>
struct AdamWScalars {
  T gradient_scale;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T weight_factor;                  // 1 - learning_rate * weight_decay
  T step_size;                      // learning_rate / bias_correction1
  T inverse_root_bias_correction2;  // 1 / sqrt(bias_correction2)
  T epsilon;
};

template <typename T>
struct SgdScalars {
  T gradient_scale;
  T weight_decay;
  T momentum;
  T one_minus_dampening;
  T learning_rate;
};

template <typename T>
struct OptimizerKernels {
  void (*adamw)(T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                const AdamWScalars<T>& scalars);
  void (*sgd)(T* weight, const T* gradient, std::size_t count, const SgdScalars<T>& scalars);
  void (*sgd_momentum)(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdScalars<T>& scalars,
                       bool nesterov, bool first);
};

TRIREME_KERNEL_TABLE(KernelTable<OptimizerKernels>, optimizer_kernels)

}  // namespace trireme::ops
