#pragma once

#include <cuda_runtime_api.h>

#include "trireme/ops/update/adam_8bit.hpp"

// Launches of the passes of ops/update/adam_8bit.hpp: T is float or double, all pointers are on the GPU.
namespace trireme::ops::cuda {

// With `measured` the elements lie in one block, of which these are the pairs of all `parts`; otherwise it is null.
template <typename T>
cudaError_t adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, const float* measured,
                      std::int64_t parts, cudaStream_t stream);

template <typename T>
cudaError_t measure_adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax,
                              cudaStream_t stream);

}  // namespace trireme::ops::cuda
