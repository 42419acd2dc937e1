#include "device/available_memory.hpp"

#include <algorithm>

#include "device/control_groups.hpp"

namespace trireme::device {
namespace {

// The file names of control groups, by version.
struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimed;  // in memory.stat: file pages that the system can reclaim
};
constexpr Names version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr Names version_2{"memory.max", "memory.current", "inactive_file "};

std::size_t left_in_group(const std::filesystem::path& folder, const Names& names) {
  const std::size_t limit = number_after(folder / names.limit, "", no_number);
  const std::size_t usage = number_after(folder / names.usage, "", no_number);
  if (limit == no_number || usage == no_number) return no_number;
  const std::size_t used = usage - std::min(usage, number_after(folder / "memory.stat", names.reclaimed, 0));
  return limit - std::min(limit, used);
}

}  // namespace

std::size_t available_host_memory(const std::filesystem::path& root) {
  const std::filesystem::path meminfo = root / "proc/meminfo";
  const std::size_t kibibytes = number_after(meminfo, "MemAvailable:", no_number);
  std::size_t left = kibibytes == no_number ? no_number : (kibibytes + number_after(meminfo, "SwapFree:", 0)) * 1024;
  for_each_control_group(root, "memory", [&left](const std::filesystem::path& folder, int version) {
    left = std::min(left, left_in_group(folder, version == 1 ? version_1 : version_2));
  });
  return left;
}

}  // namespace trireme::device
