#include "comm/nccl/gpu_of_rank.hpp"

#include <fmt/format.h>

#include <map>

namespace trireme::comm {

GpuOfRank GpuOfRank::read(std::string_view text) {
  const std::size_t end = text.find('\n');
  return {.uuid = std::string(text.substr(0, end)), .nccl_error = std::string(text.substr(end + 1))};
}

std::string obstacle_to_nccl(std::span<const GpuOfRank> ranks) {
  std::map<std::string_view, std::size_t> owners;  // by GPU
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].nccl_error.empty()) return fmt::format("rank {}: {}", rank, ranks[rank].nccl_error);
    const auto [owner, first] = owners.emplace(ranks[rank].uuid, rank);
    if (!first) return fmt::format("ranks {} and {} share a GPU", owner->second, rank);
  }
  return {};
}

}  // namespace trireme::comm
