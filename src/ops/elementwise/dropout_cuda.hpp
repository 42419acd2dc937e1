#pragma once

#include <cuda_runtime_api.h>

#include "ops/elementwise/dropout_body.hpp"

namespace trireme::ops::cuda {

// T: float, double, bfloat16, float16.
template <typename T>
cudaError_t dropout(const Dropout<T>& all, cudaStream_t stream);

}  // namespace trireme::ops::cuda
