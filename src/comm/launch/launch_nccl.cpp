#include <cstdlib>

#include "comm/launch/launch.hpp"
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::comm {

int launch_nccl(const LaunchOptions& options, const std::function<int(Group)>& main) {
  device::require_cuda();
  const JobPlace place = find_job_place(options.start_up, std::getenv);
  const auto on_gpu = [&](const Group& host) {
    device::set_cuda_device(place.local_rank % device::cuda_device_count());
    return main(gpu_group(host, options.gpu_collectives));
  };
  if (place.start_up == StartUp::mpi) return launch_mpi(options, on_gpu);
  return launch_tcp(options, place, on_gpu);
}

}  // namespace trireme::comm
