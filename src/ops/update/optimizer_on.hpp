#pragma once

#include "ops/update/optimizer_body.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

// The passes of ops/optimizer.hpp for any device: OptimizerPasses<D> does the work.
namespace trireme::ops {

template <typename D>
struct OptimizerPasses {
  template <typename T>
  static void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                   const AdamStep& step);
  template <typename T>
  static void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step);
  template <typename T>
  static void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                      const RmspropStep& step);
  template <typename T>
  static void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                           const LambStep& step, UpdateSquares* squares);
  template <typename T>
  static void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares);
  template <typename T>
  static void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step);
  template <typename T>
  static void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step);
  template <typename T>
  static void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step);
  template <typename T>
  static void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step);
  template <typename T>
  static void clip_by_value(T* gradient, std::size_t count, const ClipStep& step);
  template <typename T>
  static void move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move);
};

template <typename T, typename D>
void adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count, const AdamStep& step,
          D) {
  OptimizerPasses<D>::adam(weight, gradient, first_moment, second_moment, largest, count, step);
}

template <typename T, typename D>
void sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, D) {
  require(step.momentum == 0 || momentum != nullptr, "sgd: a momentum of {} needs a momentum buffer", step.momentum);
  OptimizerPasses<D>::sgd(weight, gradient, step.momentum == 0 ? nullptr : momentum, count, step);
}

template <typename T, typename D>
void rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
             const RmspropStep& step, D) {
  require(step.momentum == 0 || momentum != nullptr, "rmsprop: a momentum of {} needs a momentum buffer", step.momentum);
  OptimizerPasses<D>::rmsprop(weight, gradient, square_average, average, momentum, count, step);
}

template <typename T, typename D>
void lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                  const LambStep& step, UpdateSquares* squares, D) {
  OptimizerPasses<D>::lamb_moments(weight, gradient, first_moment, second_moment, count, step, squares);
}

template <typename T, typename D>
void lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares, D) {
  OptimizerPasses<D>::lars_squares(weight, gradient, count, squares);
}

template <typename T, typename D>
void adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step, D) {
  OptimizerPasses<D>::adagrad(weight, gradient, sum_of_squares, count, step);
}

template <typename T, typename D>
void lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, D) {
  OptimizerPasses<D>::lion(weight, gradient, momentum, count, step);
}

template <typename T, typename D>
void lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step, D) {
  OptimizerPasses<D>::lamb(weight, first_moment, second_moment, count, step);
}

template <typename T, typename D>
void lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, D) {
  OptimizerPasses<D>::lars(weight, gradient, momentum, count, step);
}

template <typename T, typename D>
void clip_by_value(T* gradient, std::size_t count, const ClipStep& step, D) {
  OptimizerPasses<D>::clip_by_value(gradient, count, step);
}

template <typename T, typename D>
void move_average(T* average, const T* value, std::size_t count, double rate, D) {
  OptimizerPasses<D>::move_average(average, value, count, MoveAverage<T>{static_cast<T>(rate)});
}

#define TRIREME_INSTANTIATE_OPTIMIZER(T, D)                                                                \
  template void adam(T*, const T*, T*, T*, T*, std::size_t, const AdamStep&, D);                           \
  template void sgd(T*, const T*, T*, std::size_t, const SgdStep&, D);                                     \
  template void rmsprop(T*, const T*, T*, T*, T*, std::size_t, const RmspropStep&, D);                     \
  template void adagrad(T*, const T*, T*, std::size_t, const AdagradStep&, D);                             \
  template void lion(T*, const T*, T*, std::size_t, const LionStep&, D);                                   \
  template void lamb_moments(const T*, const T*, T*, T*, std::size_t, const LambStep&, UpdateSquares*, D); \
  template void lars_squares(const T*, const T*, std::size_t, UpdateSquares*, D);                          \
  template void lamb(T*, const T*, const T*, std::size_t, const LambStep&, D);                             \
  template void lars(T*, const T*, T*, std::size_t, const LarsStep&, D);                                   \
  template void clip_by_value(T*, std::size_t, const ClipStep&, D);                                        \
  template void move_average(T*, const T*, std::size_t, double, D)

}  // namespace trireme::ops
