#include "ops/bodies/lamb.hpp"
#include "ops/bodies/reduce.hpp"
#include "ops/cuda/optimizer.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/cuda/rows.cuh"
#include "ops/cuda/update.cuh"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                 const AdamUpdate<T>& update, cudaStream_t stream) {
  if (largest == nullptr) return update_elements(count, stream, update, gradient, weight, first_moment, second_moment);
  return update_elements(count, stream, update, gradient, weight, first_moment, second_moment, largest);
}

template <typename T>
cudaError_t sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdUpdate<T>& update, cudaStream_t stream) {
  if (momentum == nullptr) return update_elements(count, stream, update, gradient, weight);
  return update_elements(count, stream, update, gradient, weight, momentum);
}

template <typename T>
cudaError_t rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                    const RmspropUpdate<T>& update, cudaStream_t stream) {
  const auto run = [=](const auto& form, auto*... kept) {
    return update_elements(count, stream, form, gradient, weight, square_average, kept...);
  };
  if (average == nullptr && momentum == nullptr) return run(PlainRmsprop<T>{update});
  if (average == nullptr) return run(MomentumRmsprop<T>{update}, momentum);
  if (momentum == nullptr) return run(CenteredRmsprop<T>{update}, average);
  return run(CenteredMomentumRmsprop<T>{update}, average, momentum);
}

template <typename T>
cudaError_t adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradUpdate<T>& update,
                    cudaStream_t stream) {
  return update_elements(count, stream, update, gradient, weight, sum_of_squares);
}

template <typename T>
cudaError_t lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionUpdate<T>& update,
                 cudaStream_t stream) {
  return update_elements(count, stream, update, gradient, weight, momentum);
}

template <typename T>
cudaError_t lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambUpdate<T>& update,
                 cudaStream_t stream) {
  return update_elements(count, stream, update, first_moment, second_moment, weight);
}

template <typename T>
cudaError_t lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsUpdate<T>& update,
                 cudaStream_t stream) {
  return update_elements(count, stream, update, gradient, weight, momentum);
}

template <typename T>
cudaError_t clip_by_value(T* gradient, std::size_t count, const ClipByValue<T>& clip, cudaStream_t stream) {
  return update_elements(count, stream, clip, gradient);
}

template <typename T>
cudaError_t move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move, cudaStream_t stream) {
  return update_elements(count, stream, move, value, average);
}

template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambUpdate<T>& update, double* sums, double* totals, cudaStream_t stream) {
  const auto elements = static_cast<std::int64_t>(count);
  const std::int64_t parts = num_sum_parts(elements);
  const LambMoments<T> body{update, weight, gradient, first_moment, second_moment, elements, parts, sums, sums + parts};
  cudaError_t status = each_row_by_block(parts, stream, body);
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums, parts, totals});
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums + parts, parts, totals + 1});
  return status;
}

#define TRIREME_INSTANTIATE(T)                                                                                       \
  template cudaError_t adam(T*, const T*, T*, T*, T*, std::size_t, const AdamUpdate<T>&, cudaStream_t);              \
  template cudaError_t sgd(T*, const T*, T*, std::size_t, const SgdUpdate<T>&, cudaStream_t);                        \
  template cudaError_t rmsprop(T*, const T*, T*, T*, T*, std::size_t, const RmspropUpdate<T>&, cudaStream_t);        \
  template cudaError_t adagrad(T*, const T*, T*, std::size_t, const AdagradUpdate<T>&, cudaStream_t);                \
  template cudaError_t lion(T*, const T*, T*, std::size_t, const LionUpdate<T>&, cudaStream_t);                      \
  template cudaError_t lamb(T*, const T*, const T*, std::size_t, const LambUpdate<T>&, cudaStream_t);                \
  template cudaError_t lars(T*, const T*, T*, std::size_t, const LarsUpdate<T>&, cudaStream_t);                      \
  template cudaError_t clip_by_value(T*, std::size_t, const ClipByValue<T>&, cudaStream_t);                          \
  template cudaError_t move_average(T*, const T*, std::size_t, const MoveAverage<T>&, cudaStream_t);                 \
  template cudaError_t lamb_moments(const T*, const T*, T*, T*, std::size_t, const LambUpdate<T>&, double*, double*, \
                                    cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops::cuda
