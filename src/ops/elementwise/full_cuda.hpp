#pragma once

#include <cuda_runtime_api.h>

#include "ops/elementwise/full_body.hpp"

namespace trireme::ops::cuda {

// T: float, double, bfloat16, float16; S: T or double.
template <typename T, typename S>
cudaError_t full(std::int64_t count, const Full<T, S>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
