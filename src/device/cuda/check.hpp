#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace trireme::device {

// Throws unless `status` is cudaSuccess: "cudaMemcpyAsync: an illegal memory access was encountered". An error of a kernel that
// ran earlier appears in whichever call comes next.
void check_cuda(cudaError_t status, std::string_view call);

// For what ends, perhaps after the driver has: nobody can be told, and the error must not appear in a later launch.
inline void ignore_cuda(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace trireme::device
