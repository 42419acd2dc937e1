#pragma once

#include <cuda_runtime_api.h>

#include "ops/update/optimizer_body.hpp"

// Launches: T is float or double; what a variant does not keep is null.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t adam(T* weight, const T* gradient, T* first_moment, T* second_moment, T* largest, std::size_t count,
                 const AdamStep& step, cudaStream_t stream);
template <typename T>
cudaError_t sgd(T* weight, const T* gradient, T* momentum, std::size_t count, const SgdStep& step, cudaStream_t stream);
template <typename T>
cudaError_t rmsprop(T* weight, const T* gradient, T* square_average, T* average, T* momentum, std::size_t count,
                    const RmspropStep& step, cudaStream_t stream);
template <typename T>
cudaError_t adagrad(T* weight, const T* gradient, T* sum_of_squares, std::size_t count, const AdagradStep& step,
                    cudaStream_t stream);
template <typename T>
cudaError_t lion(T* weight, const T* gradient, T* momentum, std::size_t count, const LionStep& step, cudaStream_t stream);
template <typename T>
cudaError_t lamb(T* weight, const T* first_moment, const T* second_moment, std::size_t count, const LambStep& step,
                 cudaStream_t stream);
template <typename T>
cudaError_t lars(T* weight, const T* gradient, T* momentum, std::size_t count, const LarsStep& step, cudaStream_t stream);
template <typename T>
cudaError_t clip_by_value(T* gradient, std::size_t count, const ClipStep& step, cudaStream_t stream);
template <typename T>
cudaError_t move_average(T* average, const T* value, std::size_t count, const MoveAverage<T>& move, cudaStream_t stream);

// *squares are on the GPU, as sums[2, num_sum_parts(count)] (ops/reduce/reduce_cuda.hpp).
template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambStep& step, double* sums, UpdateSquares* squares, cudaStream_t stream);

}  // namespace trireme::ops::cuda
