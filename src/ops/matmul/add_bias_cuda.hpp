#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/core/dtype.hpp"

namespace trireme::ops::cuda {

// Launch: y[..., width] += bias[width], of `count` elements. T is float, double, bfloat16 or float16.
template <typename T>
cudaError_t add_bias(T* y, const Accumulate<T>* bias, std::int64_t count, std::int64_t width, cudaStream_t stream);

}  // namespace trireme::ops::cuda
