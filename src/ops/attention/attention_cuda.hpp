#pragma once

#include <cuda_runtime_api.h>

namespace trireme::ops::cuda {

// Runs a kernel of attention_body.hpp on all its items. Its tiles have at least one row.
template <typename Kernel>
cudaError_t run_tiles(const Kernel& kernel, cudaStream_t stream);

}  // namespace trireme::ops::cuda
