#pragma once

#include <cuda_runtime_api.h>

#include "ops/norm/group_norm_body.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t group_norm(const NormalizeGroup<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t group_norm_backward(const GroupNormGradient<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t group_norm_weight_gradient(const GroupNormWeightGradient<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
