#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::ops::cuda {

// y[i] = (first + i) % time.
cudaError_t positions(std::int64_t first, std::int64_t time, std::int64_t count, std::int32_t* y, cudaStream_t stream);

}  // namespace trireme::ops::cuda
