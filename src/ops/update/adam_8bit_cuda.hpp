#pragma once

#include <cuda_runtime_api.h>

#include "trireme/ops/update/adam_8bit.hpp"

// Launches of the passes of ops/update/adam_8bit.hpp: T is float or double, all pointers are on the GPU.
namespace trireme::ops::cuda {

// If `measured` is not null, all elements are in one block, and it has the pairs of all `parts` of that block.
template <typename T>
cudaError_t adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, const float* measured,
                      std::int64_t parts, cudaStream_t stream);

template <typename T>
cudaError_t measure_adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax,
                              cudaStream_t stream);

}  // namespace trireme::ops::cuda
