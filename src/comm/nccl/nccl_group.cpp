#include <chrono>

#include "comm/nccl/nccl_backend.hpp"
#include "trireme/comm/nccl.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme {
namespace {

constexpr std::chrono::milliseconds look_interval{100};

}  // namespace

Group nccl_group(const Group& host) {
  std::shared_ptr<const comm::NcclApi> api;
  const auto open = [&api] {
    device::require_cuda();
    api = std::make_shared<const comm::NcclApi>(comm::open_nccl());
  };
  host.agree(open, "NCCL");
  return Group(std::make_shared<comm::NcclBackend>(
      comm::backend_of(host),
      comm::NcclParts{
          .api = api, .make_stream = comm::make_gpu_stream, .watchdog = std::make_shared<comm::Watchdog>(look_interval)}));
}

}  // namespace trireme
