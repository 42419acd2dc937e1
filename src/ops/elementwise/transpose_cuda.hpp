#pragma once

#include <cuda_runtime_api.h>

#include "ops/elementwise/transpose_sizes.hpp"

namespace trireme::ops::cuda {

// Moves elements of 1, 2, 4 or 8 bytes.
cudaError_t transpose(const TransposeSizes& sizes, int element_bytes, const void* x, void* y, cudaStream_t stream);

}  // namespace trireme::ops::cuda
