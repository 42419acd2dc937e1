// Groups of GPUs in a build without CUDA: none.
#include "trireme/comm/nccl.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme {

Group nccl_group(const Group& host) {
  device::require_cuda();
  return host;
}

}  // namespace trireme
