#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trireme::comm {

// What a rank tells the others before they choose how their collectives go.
struct GpuOfRank {
  std::string uuid = {};
  std::string nccl_error = {};  // what keeps the rank from NCCL; empty: nothing

  std::string text() const { return uuid + '\n' + nccl_error; }
  static GpuOfRank read(std::string_view text);
};

// Why these ranks, by number, can't use NCCL together; empty: they can.
std::string obstacle_to_nccl(std::span<const GpuOfRank> ranks);

}  // namespace trireme::comm
