#pragma once

#include <cuda_runtime_api.h>

#include "trireme/ops/update/each_optimizer.hpp"

// Launches. T, or the T of a formula, is float or double.
namespace trireme::ops::cuda {

template <typename Update>
cudaError_t update_elements(const typename Update::Step& step, std::size_t count, const typename Update::Planes& planes,
                            cudaStream_t stream);

// *squares is on the GPU, like sums[2, num_sum_parts(count)] (ops/reduce/reduce_cuda.hpp).
template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambStep& step, double* sums, UpdateSquares* squares, cudaStream_t stream);

}  // namespace trireme::ops::cuda
