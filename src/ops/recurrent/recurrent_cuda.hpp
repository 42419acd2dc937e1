#pragma once

#include <cuda_runtime_api.h>

#include "ops/recurrent/recurrent_body.hpp"

// Launches: T is float or double.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t recurrent_step(const RecurrentStep<T>& step, cudaStream_t stream);
template <typename T>
cudaError_t recurrent_backward_step(const RecurrentBackwardStep<T>& step, cudaStream_t stream);

}  // namespace trireme::ops::cuda
