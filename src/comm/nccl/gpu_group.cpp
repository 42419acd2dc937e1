#include "trireme/comm/nccl/gpu_group.hpp"

#include <chrono>
#include <vector>

#include "comm/nccl/gpu_of_rank.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "trireme/core/log.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme {
namespace {

constexpr std::chrono::milliseconds look_interval{100};

Group staged_group(const Group& host) {
  return Group(std::make_shared<comm::StagedBackend>(comm::backend_of(host), comm::make_gpu_stream));
}

Group nccl_group(const Group& host, std::shared_ptr<const comm::NcclApi> api) {
  return Group(std::make_shared<comm::NcclBackend>(
      comm::backend_of(host), comm::NcclParts{.api = std::move(api),
                                              .make_stream = comm::make_gpu_stream,
                                              .watchdog = std::make_shared<comm::Watchdog>(look_interval)}));
}

std::shared_ptr<const comm::NcclApi> open_nccl() { return std::make_shared<const comm::NcclApi>(comm::open_nccl()); }

Group choose_group(const Group& host) {
  comm::GpuOfRank own{.uuid = device::cuda_device(device::current_cuda_device()).uuid};
  std::shared_ptr<const comm::NcclApi> api;
  try {
    api = open_nccl();
  } catch (const Error& error) {
    own.nccl_error = error.what();
  }
  std::vector<comm::GpuOfRank> ranks;
  for (const std::string& text : host.gather_texts(own.text(), "GPUs")) ranks.push_back(comm::GpuOfRank::read(text));
  const std::string obstacle = comm::obstacle_to_nccl(ranks);
  if (obstacle.empty()) return nccl_group(host, std::move(api));
  if (host.rank() == 0 && host.size() > 1) {
    log(Severity::warning, "collectives on GPUs go through the host's memory, not through NCCL: {}", obstacle);
  }
  return staged_group(host);
}

}  // namespace

Group gpu_group(const Group& host, GpuCollectives collectives) {
  host.agree(device::require_cuda, "GPUs");
  switch (collectives) {
    case GpuCollectives::automatic: return choose_group(host);
    case GpuCollectives::staged: return staged_group(host);
    case GpuCollectives::nccl: break;
  }
  std::shared_ptr<const comm::NcclApi> api;
  host.agree([&api] { api = open_nccl(); }, "NCCL");
  return nccl_group(host, std::move(api));
}

}  // namespace trireme
