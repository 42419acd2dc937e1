#include "ops/kernels/optimizer.hpp"

#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Moves the moments by a gradient.
template <typename T>
TRIREME_HOST_DEVICE void move_moments(T g, T& first, T& second, const MomentScalars<T>& s) {
  first = s.beta1 * first + s.one_minus_beta1 * g;
  second = s.beta2 * second + s.one_minus_beta2 * (g * g);
}

template <bool keeps_largest, typename T>
void adam_of(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
             const AdamScalars<T>& scalars) {
  const AdamScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    T first = first_moment[i];
    T second = second_moment[i];
    move_moments(s.gradient_scale * gradient[i] + s.gradient_decay * weight[i], first, second, s.moments);
    first_moment[i] = first;
    second_moment[i] = second;
    if constexpr (keeps_largest) {
      second = largest[i] > second ? largest[i] : second;
      largest[i] = second;
    }
    weight[i] = s.weight_factor * weight[i] -
                s.step_size * first / (math::square_root(second) * s.inverse_root_bias_correction2 + s.epsilon);
  }
}

template <typename T>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
          const AdamScalars<T>& scalars) {
  if (largest == nullptr) {
    adam_of<false>(weight, gradient, first_moment, second_moment, largest, count, scalars);
  } else {
    adam_of<true>(weight, gradient, first_moment, second_moment, largest, count, scalars);
  }
}

template <bool has_momentum, typename T>
void sgd_of(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdScalars<T>& scalars, bool nesterov,
            bool first) {
  const SgdScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    T direction = s.gradient_scale * gradient[i] + s.weight_decay * weight[i];
    if constexpr (has_momentum) {
      const T velocity = first ? direction : s.momentum * momentum[i] + s.one_minus_dampening * direction;
      momentum[i] = velocity;
      direction = nesterov ? direction + s.momentum * velocity : velocity;
    }
    weight[i] -= s.learning_rate * direction;
  }
}

template <typename T>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdScalars<T>& scalars, bool nesterov,
         bool first) {
  if (momentum == nullptr) {
    sgd_of<false>(weight, gradient, momentum, count, scalars, nesterov, first);
  } else {
    sgd_of<true>(weight, gradient, momentum, count, scalars, nesterov, first);
  }
}

template <bool centered, bool has_momentum, typename T>
void rmsprop_of(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                const RmspropScalars<T>& scalars) {
  const RmspropScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i] + s.weight_decay * weight[i];
    const T square = s.smoothing * square_average[i] + s.one_minus_smoothing * (g * g);
    square_average[i] = square;
    T variance = square;
    if constexpr (centered) {
      const T mean = s.smoothing * average[i] + s.one_minus_smoothing * g;
      average[i] = mean;
      variance -= mean * mean;
      variance = variance < 0 ? 0 : variance;  // by rounding
    }
    T direction = g / (math::square_root(variance) + s.epsilon);
    if constexpr (has_momentum) {
      direction += s.momentum * momentum[i];
      momentum[i] = direction;
    }
    weight[i] -= s.learning_rate * direction;
  }
}

template <typename T>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropScalars<T>& scalars) {
  if (average == nullptr && momentum == nullptr) {
    rmsprop_of<false, false>(weight, gradient, square_average, average, momentum, count, scalars);
  } else if (average == nullptr) {
    rmsprop_of<false, true>(weight, gradient, square_average, average, momentum, count, scalars);
  } else if (momentum == nullptr) {
    rmsprop_of<true, false>(weight, gradient, square_average, average, momentum, count, scalars);
  } else {
    rmsprop_of<true, true>(weight, gradient, square_average, average, momentum, count, scalars);
  }
}

template <typename T>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradScalars<T>& scalars) {
  const AdagradScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i] + s.weight_decay * weight[i];
    const T sum = sum_of_squares[i] + g * g;
    sum_of_squares[i] = sum;
    weight[i] -= s.learning_rate * g / (math::square_root(sum) + s.epsilon);
  }
}

template <typename T>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionScalars<T>& scalars) {
  const LionScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i];
    const T direction = s.moments.beta1 * momentum[i] + s.moments.one_minus_beta1 * g;
    const T rate = direction > 0 ? s.learning_rate : -s.learning_rate;
    momentum[i] = s.moments.beta2 * momentum[i] + s.moments.one_minus_beta2 * g;
    weight[i] = s.weight_factor * weight[i] - (direction == 0 ? 0 : rate);
  }
}

template <typename T>
TRIREME_HOST_DEVICE T lamb_update(T weight, T first, T second, const LambScalars<T>& s) {
  return first * s.inverse_bias_correction1 / (math::square_root(second) * s.inverse_root_bias_correction2 + s.epsilon) +
         s.weight_decay * weight;
}

template <typename T>
UpdateSquares lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambScalars<T>& scalars) {
  const LambScalars<T> s = scalars;
  constexpr std::size_t lanes = 32;  // independent sums
  double weights[lanes] = {};
  double updates[lanes] = {};
  const auto add = [&](std::size_t i, std::size_t lane) {
    T first = first_moment[i];
    T second = second_moment[i];
    move_moments(s.gradient_scale * gradient[i], first, second, s.moments);
    first_moment[i] = first;
    second_moment[i] = second;
    const auto w = static_cast<double>(weight[i]);
    const auto u = static_cast<double>(lamb_update(weight[i], first, second, s));
    weights[lane] += w * w;
    updates[lane] += u * u;
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  }
  for (; i < count; ++i) add(i, 0);
  UpdateSquares squares;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    squares.weight += weights[lane];
    squares.update += updates[lane];
  }
  return squares;
}

template <typename T>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambScalars<T>& scalars) {
  const LambScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    weight[i] -= s.learning_rate * lamb_update(weight[i], first_moment[i], second_moment[i], s);
  }
}

template <typename T>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsScalars<T>& scalars) {
  const LarsScalars<T> s = scalars;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T g = s.gradient_scale * gradient[i] + s.weight_decay * weight[i];
    const T velocity = s.momentum * momentum[i] + s.learning_rate * g;
    momentum[i] = velocity;
    weight[i] -= velocity;
  }
}

template <typename T>
void clip_by_value(T* gradient, std::size_t count, T scale, T limit) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    T g = scale * gradient[i];
    g = g > limit ? limit : g;
    gradient[i] = g < -limit ? -limit : g;
  }
}

template <typename T>
void move_average(T* average, const T* value, std::size_t count, T rate) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) average[i] += rate * (value[i] - average[i]);
}

template <typename T>
constexpr OptimizerKernels<T> kernels{adam<T>,         sgd<T>,  rmsprop<T>, adagrad<T>,       lion<T>,
                                      lamb_moments<T>, lamb<T>, lars<T>,    clip_by_value<T>, move_average<T>};

}  // namespace

const KernelTable<OptimizerKernels> optimizer_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
