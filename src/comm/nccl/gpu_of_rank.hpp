#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trireme::comm {

// What the ranks exchange to choose between NCCL and staging.
struct GpuOfRank {
  std::string uuid = {};
  std::string nccl_error = {};  // why the rank can't use NCCL; empty: it can

  std::string text() const { return uuid + '\n' + nccl_error; }
  static GpuOfRank read(std::string_view text);
};

// Why these ranks can't use NCCL together; empty: they can.
std::string obstacle_to_nccl(std::span<const GpuOfRank> ranks);

}  // namespace trireme::comm
