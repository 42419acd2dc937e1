#include "device/cuda/teams.cuh"
#include "ops/cuda/optimizer.hpp"
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

namespace kernels {

inline constexpr std::int64_t elements_per_block = 16384;

// Sums go in the order of the elements of a thread, of the threads of a block and of the blocks: the same bits in every run.
template <typename T>
__global__ void __launch_bounds__(device::threads_per_block)
    lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::int64_t count,
                 LambUpdate<T> update, double* sums) {
  const std::int64_t begin = blockIdx.x * elements_per_block;
  const std::int64_t end = begin + elements_per_block < count ? begin + elements_per_block : count;
  double weights = 0;
  double updates = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const double w = weight[i];
    const double u = update.measured(gradient[i], weight[i], first_moment[i], second_moment[i]);
    weights += w * w;
    updates += u * u;
  }
  const device::BlockTeam team;
  weights = team.sum(weights);
  updates = team.sum(updates);
  if (team.rank() == 0) {
    sums[2 * blockIdx.x] = weights;
    sums[2 * blockIdx.x + 1] = updates;
  }
}

__global__ void __launch_bounds__(device::threads_per_block) add_blocks(std::int64_t blocks, double* sums) {
  double weights = 0;
  double updates = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += blockDim.x) {
    weights += sums[2 * i];
    updates += sums[2 * i + 1];
  }
  const device::BlockTeam team;
  weights = team.sum(weights);
  updates = team.sum(updates);
  if (team.rank() == 0) {
    sums[2 * blocks] = weights;
    sums[2 * blocks + 1] = updates;
  }
}

}  // namespace kernels

std::int64_t lamb_blocks(std::size_t count) {
  return (static_cast<std::int64_t>(count) + kernels::elements_per_block - 1) / kernels::elements_per_block;
}

template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambUpdate<T>& update, double* sums, cudaStream_t stream) {
  const std::int64_t blocks = lamb_blocks(count);
  if (blocks > 0) {
    kernels::lamb_moments<<<static_cast<unsigned>(blocks), device::threads_per_block, 0, stream>>>(
        weight, gradient, first_moment, second_moment, static_cast<std::int64_t>(count), update, sums);
  }
  kernels::add_blocks<<<1, device::threads_per_block, 0, stream>>>(blocks, sums);
  return device::launched();
}

#define TRIREME_INSTANTIATE(T)                                                                                \
  template cudaError_t adam(T*, const T*, T*, T*, T*, std::size_t, const AdamUpdate<T>&, cudaStream_t);       \
  template cudaError_t sgd(T*, const T*, T*, std::size_t, const SgdUpdate<T>&, cudaStream_t);                 \
  template cudaError_t rmsprop(T*, const T*, T*, T*, T*, std::size_t, const RmspropUpdate<T>&, cudaStream_t); \
  template cudaError_t adagrad(T*, const T*, T*, std::size_t, const AdagradUpdate<T>&, cudaStream_t);         \
  template cudaError_t lion(T*, const T*, T*, std::size_t, const LionUpdate<T>&, cudaStream_t);               \
  template cudaError_t lamb(T*, const T*, const T*, std::size_t, const LambUpdate<T>&, cudaStream_t);         \
  template cudaError_t lars(T*, const T*, T*, std::size_t, const LarsUpdate<T>&, cudaStream_t);               \
  template cudaError_t clip_by_value(T*, std::size_t, const ClipByValue<T>&, cudaStream_t);                   \
  template cudaError_t move_average(T*, const T*, std::size_t, const MoveAverage<T>&, cudaStream_t);          \
  template cudaError_t lamb_moments(const T*, const T*, T*, T*, std::size_t, const LambUpdate<T>&, double*, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops::cuda
