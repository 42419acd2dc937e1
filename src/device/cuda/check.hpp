#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace trireme::device {

// Throws unless `status` is cudaSuccess: "cudaMemcpyAsync: an illegal memory access was encountered". An error of a kernel that
// ran earlier appears in whichever call comes next.
void check_cuda(cudaError_t status, std::string_view call);

}  // namespace trireme::device
