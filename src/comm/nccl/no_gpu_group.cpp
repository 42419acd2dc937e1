// A build without CUDA has no groups of GPUs.
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme {

Group gpu_group(const Group& host, GpuCollectives) {
  device::require_cuda();
  return host;
}

}  // namespace trireme
