#include "ops/reduce/block_sums.hpp"
#include "ops/update/optimizer_kernels.hpp"
#include "ops/update/optimizer_on.hpp"
#include "trireme/ops/reduce/reduce.hpp"

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

}  // namespace

template <>
template <typename T>
void OptimizerPasses<Cpu>::adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                                const AdamStep& step) {
  const AdamUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.adam(weight + at, gradient + at, first_moment + at, second_moment + at, from(largest, at), part, update);
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step) {
  const SgdUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.sgd(weight + at, gradient + at, from(momentum, at), part, update);
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                                   const RmspropStep& step) {
  const RmspropUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.rmsprop(weight + at, gradient + at, square_average + at, from(average, at), from(momentum, at), part, update);
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count,
                                   const AdagradStep& step) {
  const AdagradUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.adagrad(weight + at, gradient + at, sum_of_squares + at, part, update);
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step) {
  const LionUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count,
           [&](std::int64_t at, std::size_t part) { kernels.lion(weight + at, gradient + at, momentum + at, part, update); });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count,
                                const LambStep& step) {
  const LambUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) {
    kernels.lamb(weight + at, first_moment + at, second_moment + at, part, update);
  });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step) {
  const LarsUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count,
           [&](std::int64_t at, std::size_t part) { kernels.lars(weight + at, gradient + at, momentum + at, part, update); });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::clip_by_value(T* gradient, std::size_t count, const ClipStep& step) {
  const ClipByValue<T> clip(step);
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) { kernels.clip_by_value(gradient + at, part, clip); });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move) {
  const auto& kernels = optimizer_kernels().of<T>();
  in_parts(count, [&](std::int64_t at, std::size_t part) { kernels.move_average(average + at, value + at, part, move); });
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment,
                                        std::size_t count, const LambStep& step, UpdateSquares* squares) {
  const LambUpdate<T> update(step);
  const auto& kernels = optimizer_kernels().of<T>();
  const auto sum = [](const UpdateSquares& a, const UpdateSquares& b) {
    return UpdateSquares{.weight = a.weight + b.weight, .update = a.update + b.update};
  };
  const auto of_range = combine_blocks<UpdateSquares>(
      static_cast<std::int64_t>(count),
      [&](std::int64_t at, std::int64_t part) {
        return kernels.lamb_moments(weight + at, gradient + at, first_moment + at, second_moment + at,
                                    static_cast<std::size_t>(part), update);
      },
      sum);
  *squares = sum(*squares, of_range);
}

template <>
template <typename T>
void OptimizerPasses<Cpu>::lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares) {
  squares->weight += sum_of_squares(weight, count).item();
  squares->update += sum_of_squares(gradient, count).item();
}

TRIREME_INSTANTIATE_OPTIMIZER(float, Cpu);
TRIREME_INSTANTIATE_OPTIMIZER(double, Cpu);

}  // namespace trireme::ops
