#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace trireme::device {

// Throws Error unless `status` is cudaSuccess. An error of an earlier kernel appears in the next CUDA call, for example
// "cudaMemcpyAsync: an illegal memory access was encountered".
void check_cuda(cudaError_t status, std::string_view call);

// For destructors, which may run after the driver has shut down: drops the error, so that no later launch reports it.
inline void ignore_cuda(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace trireme::device
