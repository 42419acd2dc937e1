#pragma once

#include <cstddef>

#include "ops/kernels/table.hpp"
#include "trireme/ops/optimizer.hpp"

namespace trireme::ops {

// The scalars of a step, rounded to the element type once.
template <typename T>
struct MomentScalars {
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
};

template <typename T>
struct AdamScalars {
  T gradient_scale;
  T gradient_decay;  // weight decay that is added to the gradient
  MomentScalars<T> moments;
  T weight_factor;                  // 1 - learning_rate * weight_decay, where that is decoupled
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
struct RmspropScalars {
  T gradient_scale;
  T weight_decay;
  T smoothing;
  T one_minus_smoothing;
  T epsilon;
  T momentum;
  T learning_rate;
};

template <typename T>
struct AdagradScalars {
  T gradient_scale;
  T weight_decay;
  T epsilon;
  T learning_rate;
};

template <typename T>
struct LionScalars {
  T gradient_scale;
  MomentScalars<T> moments;
  T weight_factor;  // 1 - learning_rate * weight_decay
  T learning_rate;
};

template <typename T>
struct LambScalars {
  T gradient_scale;
  MomentScalars<T> moments;
  T inverse_bias_correction1;
  T inverse_root_bias_correction2;
  T epsilon;
  T weight_decay;
  T learning_rate;
};

template <typename T>
struct LarsScalars {
  T gradient_scale;
  T momentum;
  T weight_decay;
  T learning_rate;
};

template <typename T>
struct OptimizerKernels {
  // What a variant does not keep is null: largest, momentum, average.
  void (*adam)(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
               const AdamScalars<T>& scalars);
  void (*sgd)(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdScalars<T>& scalars, bool nesterov,
              bool first);
  void (*rmsprop)(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                  const RmspropScalars<T>& scalars);
  void (*adagrad)(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradScalars<T>& scalars);
  void (*lion)(T* weight, const T* gradient, T* momentum, std::size_t count, const LionScalars<T>& scalars);
  UpdateSquares (*lamb_moments)(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                                const LambScalars<T>& scalars);
  void (*lamb)(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambScalars<T>& scalars);
  void (*lars)(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsScalars<T>& scalars);
  void (*clip_by_value)(T* gradient, std::size_t count, T scale, T limit);
  void (*move_average)(T* average, const T* value, std::size_t count, T rate);
};

TRIREME_KERNEL_TABLE(KernelTable<OptimizerKernels>, optimizer_kernels)

}  // namespace trireme::ops
