#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t activation(Activation kind, std::int64_t count, const T* x, T* y, cudaStream_t stream);
template <typename T>
cudaError_t activation_backward(Activation kind, std::int64_t count, const T* x, const T* dy, T* dx, bool accumulate,
                                cudaStream_t stream);
template <typename T>
cudaError_t gated(Activation kind, std::int64_t count, const T* gate, const T* x, T* y, bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t gate_gradient(Activation kind, std::int64_t count, const T* gate, const T* x, const T* dy, T* dgate,
                          bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t add(std::int64_t count, const T* a, const T* b, T* c, cudaStream_t stream);
template <typename T>
cudaError_t subtract(std::int64_t count, const T* a, const T* b, T* c, cudaStream_t stream);
template <typename T>
cudaError_t multiply(std::int64_t count, const T* a, const T* b, T* c, bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t divide(std::int64_t count, const T* a, const T* b, T* c, bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t divide_backward_divisor(std::int64_t count, const T* a, const T* b, const T* dy, T* db, bool accumulate,
                                    cudaStream_t stream);
template <typename T>
cudaError_t shift(std::int64_t count, const T* a, Accumulate<T> summand, T* c, cudaStream_t stream);
template <typename T>
cudaError_t scale(std::int64_t count, const T* a, Accumulate<T> factor, T* c, bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
