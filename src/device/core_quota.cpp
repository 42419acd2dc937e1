#include "trireme/device/core_quota.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

#include "device/control_groups.hpp"

namespace trireme::device {
namespace {

// The quota allows `work` microseconds of CPU time per `period` microseconds.
struct Quota {
  std::size_t work = no_number;
  std::size_t period = no_number;
};

Quota quota_in(const std::filesystem::path& folder, int version) {
  if (version == 1) {
    return {.work = number_after(folder / "cpu.cfs_quota_us", "", no_number),  // -1, no quota, becomes the largest number
            .period = number_after(folder / "cpu.cfs_period_us", "", no_number)};
  }
  Quota quota;
  std::ifstream file(folder / "cpu.max");
  std::size_t work = 0;
  std::size_t period = 0;
  if (file >> work >> period) quota = {.work = work, .period = period};  // fails for "max", no quota
  return quota;
}

}  // namespace

int core_quota(const std::filesystem::path& root) {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  std::size_t cores = most;
  for_each_control_group(root, "cpu", [&cores](const std::filesystem::path& folder, int version) {
    const auto [work, period] = quota_in(folder, version);
    if (work == no_number || period == no_number || period == 0) return;
    cores = std::min(cores, std::max<std::size_t>((work + period - 1) / period, 1));
  });
  return static_cast<int>(cores);
}

}  // namespace trireme::device
