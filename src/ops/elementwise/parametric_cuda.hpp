#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/core/dtype.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t leaky_relu(std::int64_t count, const T* x, Accumulate<T> slope, T* y, cudaStream_t stream);
template <typename T>
cudaError_t leaky_relu_backward(std::int64_t count, const T* x, Accumulate<T> slope, const T* dy, T* dx, bool accumulate,
                                cudaStream_t stream);
template <typename T>
cudaError_t softplus(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, T* y, cudaStream_t stream);
template <typename T>
cudaError_t softplus_backward(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, const T* dy, T* dx,
                              bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
