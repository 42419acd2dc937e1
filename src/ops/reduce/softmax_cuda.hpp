#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Launches: T is float, double, bfloat16 or float16; `logarithm` is true for log_softmax.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t softmax(bool logarithm, std::int64_t rows, std::int64_t width, const T* x, T* y, cudaStream_t stream);
template <typename T>
cudaError_t softmax_backward(bool logarithm, std::int64_t rows, std::int64_t width, const T* y, const T* dy, T* dx,
                             bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
