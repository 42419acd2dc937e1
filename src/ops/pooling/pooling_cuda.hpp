#pragma once

#include <cuda_runtime_api.h>

#include "ops/pooling/pooling_body.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t max_pool(const PoolImages& images, std::int64_t batch, const T* x, T* y, std::int32_t* argmax, cudaStream_t stream);
template <typename T>
cudaError_t max_pool_backward(const PoolImages& images, std::int64_t batch, const T* dy, const std::int32_t* argmax, T* dx,
                              bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t average_pool(const PoolImages& images, std::int64_t batch, const T* x, T* y, cudaStream_t stream);
template <typename T>
cudaError_t average_pool_backward(const PoolImages& images, std::int64_t batch, const T* dy, T* dx, bool accumulate,
                                  cudaStream_t stream);

}  // namespace trireme::ops::cuda
