#include "trireme/ops/optimizer.hpp"

#include <cmath>

#include "ops/block_sums.hpp"
#include "ops/kernels/optimizer.hpp"
#include "trireme/core/error.hpp"

namespace trireme::ops {

namespace {

// Calls pass(begin, count) for parts of the range, one on each thread.
template <typename Pass>
void in_parts(std::size_t count, const Pass& pass) {
  parallel_elements(static_cast<std::int64_t>(count),
                    [&](std::int64_t begin, std::int64_t end) { pass(begin, static_cast<std::size_t>(end - begin)); });
}

template <typename T>
T* from(T* plane_or_null, std::int64_t at) {
  return plane_or_null == nullptr ? nullptr : plane_or_null + at;
}

template <typename T, typename Step>
MomentScalars<T> moment_scalars(const Step& step) {
  return {.beta1 = static_cast<T>(step.beta1),
          .one_minus_beta1 = static_cast<T>(1 - step.beta1),
          .beta2 = static_cast<T>(step.beta2),
          .one_minus_beta2 = static_cast<T>(1 - step.beta2)};
}

template <typename T>
LambScalars<T> lamb_scalars(const LambStep& step) {
  return {.gradient_scale = static_cast<T>(step.gradient_scale),
          .moments = moment_scalars<T>(step),
          .inverse_bias_correction1 = static_cast<T>(1 / step.bias_correction1),
          .inverse_root_bias_correction2 = static_cast<T>(1 / std::sqrt(step.bias_correction2)),
          .epsilon = static_cast<T>(step.epsilon),
          .weight_decay = static_cast<T>(step.weight_decay),
          .learning_rate = static_cast<T>(step.learning_rate)};
}

}  // namespace

template <typename T>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count, const AdamStep& step,
          Cpu) {
  const AdamScalars<T> scalars{
      .gradient_scale = static_cast<T>(step.gradient_scale),
      .gradient_decay = static_cast<T>(step.decoupled ? 0 : step.weight_decay),
      .moments = moment_scalars<T>(step),
      .weight_factor = static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1),
      .step_size = static_cast<T>(step.learning_rate / step.bias_correction1),
      .inverse_root_bias_correction2 = static_cast<T>(1 / std::sqrt(step.bias_correction2)),
      .epsilon = static_cast<T>(step.epsilon),
  };
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.adam(weight + at, gradient + at, first_moment + at, second_moment + at, from(largest, at), part, scalars);
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
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.sgd(weight + at, gradient + at, step.momentum == 0 ? nullptr : momentum + at, part, scalars, step.nesterov,
                step.first);
  });
}

template <typename T>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropStep& step, Cpu) {
  require(step.momentum == 0 || momentum != nullptr, "rmsprop: a momentum of {} needs a momentum buffer", step.momentum);
  const RmspropScalars<T> scalars{.gradient_scale = static_cast<T>(step.gradient_scale),
                                  .weight_decay = static_cast<T>(step.weight_decay),
                                  .smoothing = static_cast<T>(step.smoothing),
                                  .one_minus_smoothing = static_cast<T>(1 - step.smoothing),
                                  .epsilon = static_cast<T>(step.epsilon),
                                  .momentum = static_cast<T>(step.momentum),
                                  .learning_rate = static_cast<T>(step.learning_rate)};
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.rmsprop(weight + at, gradient + at, square_average + at, from(average, at), from(momentum, at), part, scalars);
  });
}

template <typename T>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step, Cpu) {
  const AdagradScalars<T> scalars{.gradient_scale = static_cast<T>(step.gradient_scale),
                                  .weight_decay = static_cast<T>(step.weight_decay),
                                  .epsilon = static_cast<T>(step.epsilon),
                                  .learning_rate = static_cast<T>(step.learning_rate)};
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.adagrad(weight + at, gradient + at, sum_of_squares + at, part, scalars);
  });
}

template <typename T>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, Cpu) {
  const LionScalars<T> scalars{.gradient_scale = static_cast<T>(step.gradient_scale),
                               .moments = moment_scalars<T>(step),
                               .weight_factor = static_cast<T>(1 - step.learning_rate * step.weight_decay),
                               .learning_rate = static_cast<T>(step.learning_rate)};
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count,
           [&](std::int64_t at, std::size_t part) { kernels.lion(weight + at, gradient + at, momentum + at, part, scalars); });
}

template <typename T>
UpdateSquares lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambStep& step, Cpu) {
  const LambScalars<T> scalars = lamb_scalars<T>(step);
  const auto& kernels = optimizer_kernels().of<T>();
  return combine_blocks<UpdateSquares>(
      static_cast<std::int64_t>(count),
      [&](std::int64_t at, std::int64_t part) {
        return kernels.lamb_moments(weight + at, gradient + at, first_moment + at, second_moment + at,
                                    static_cast<std::size_t>(part), scalars);
      },
      [](const UpdateSquares& a, const UpdateSquares& b) {
        return UpdateSquares{.weight = a.weight + b.weight, .update = a.update + b.update};
      });
}

template <typename T>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step, Cpu) {
  const LambScalars<T> scalars = lamb_scalars<T>(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.lamb(weight + at, first_moment + at, second_moment + at, part, scalars);
  });
}

template <typename T>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, Cpu) {
  const LarsScalars<T> scalars{.gradient_scale = static_cast<T>(step.gradient_scale),
                               .momentum = static_cast<T>(step.momentum),
                               .weight_decay = static_cast<T>(step.weight_decay),
                               .learning_rate = static_cast<T>(step.learning_rate)};
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count,
           [&](std::int64_t at, std::size_t part) { kernels.lars(weight + at, gradient + at, momentum + at, part, scalars); });
}

template <typename T>
void clip_by_value(T* gradient, std::size_t count, double scale, double limit, Cpu) {
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.clip_by_value(gradient + at, part, static_cast<T>(scale), static_cast<T>(limit));
  });
}

template <typename T>
void move_average(T* average, const T* value, std::size_t count, double rate, Cpu) {
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.move_average(average + at, value + at, part, static_cast<T>(rate));
  });
}

#define TRIREME_INSTANTIATE(T)                                                                        \
  template void adam(T*, const T*, T*, T*, T*, std::size_t, const AdamStep&, Cpu);                    \
  template void sgd(T*, const T*, T*, std::size_t, const SgdStep&, Cpu);                              \
  template void rmsprop(T*, const T*, T*, T*, T*, std::size_t, const RmspropStep&, Cpu);              \
  template void adagrad(T*, const T*, T*, std::size_t, const AdagradStep&, Cpu);                      \
  template void lion(T*, const T*, T*, std::size_t, const LionStep&, Cpu);                            \
  template UpdateSquares lamb_moments(const T*, const T*, T*, T*, std::size_t, const LambStep&, Cpu); \
  template void lamb(T*, const T*, const T*, std::size_t, const LambStep&, Cpu);                      \
  template void lars(T*, const T*, T*, std::size_t, const LarsStep&, Cpu);                            \
  template void clip_by_value(T*, std::size_t, double, double, Cpu);                                  \
  template void move_average(T*, const T*, std::size_t, double, Cpu);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
