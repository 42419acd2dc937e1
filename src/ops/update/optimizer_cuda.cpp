#include "ops/update/optimizer_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "ops/update/optimizer_on.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void OptimizerPasses<Cuda>::adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                                 const AdamStep& step) {
  check_cuda(cuda::adam(weight, gradient, first_moment, second_moment, largest, count, step, native_stream()), "adam");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step) {
  check_cuda(cuda::sgd(weight, gradient, momentum, count, step, native_stream()), "sgd");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                                    const RmspropStep& step) {
  check_cuda(cuda::rmsprop(weight, gradient, square_average, average, momentum, count, step, native_stream()), "rmsprop");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count,
                                    const AdagradStep& step) {
  check_cuda(cuda::adagrad(weight, gradient, sum_of_squares, count, step, native_stream()), "adagrad");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step) {
  check_cuda(cuda::lion(weight, gradient, momentum, count, step, native_stream()), "lion");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count,
                                 const LambStep& step) {
  check_cuda(cuda::lamb(weight, first_moment, second_moment, count, step, native_stream()), "lamb");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step) {
  check_cuda(cuda::lars(weight, gradient, momentum, count, step, native_stream()), "lars");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::clip_by_value(T* gradient, std::size_t count, const ClipStep& step) {
  check_cuda(cuda::clip_by_value(gradient, count, step, native_stream()), "clip_by_value");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move) {
  check_cuda(cuda::move_average(average, value, count, move, native_stream()), "move_average");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment,
                                         std::size_t count, const LambStep& step, UpdateSquares* squares) {
  const Tensor<double, Cuda> sums({2, cuda::num_sum_parts(static_cast<std::int64_t>(count))});
  check_cuda(
      cuda::lamb_moments(weight, gradient, first_moment, second_moment, count, step, sums.data(), squares, native_stream()),
      "lamb_moments");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares) {
  const auto elements = static_cast<std::int64_t>(count);
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(elements)});
  const auto add = [&](const T* x, double* total) {
    check_cuda(cuda::sum_of_squares(x, elements, sums.data(), total, true, native_stream()), "lars_squares");
  };
  add(weight, &squares->weight);
  add(gradient, &squares->update);
}

TRIREME_INSTANTIATE_OPTIMIZER(float, Cuda);
TRIREME_INSTANTIATE_OPTIMIZER(double, Cuda);

}  // namespace trireme::ops
