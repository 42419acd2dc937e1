#include "device/available_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace trireme::device {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// The number that follows a word at the beginning of a line; `otherwise` where there is none.
std::size_t number_after(const std::filesystem::path& file, std::string_view word, std::size_t otherwise) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(word)) continue;
    const char* text = line.c_str() + word.size();
    char* end = nullptr;
    const unsigned long long number = std::strtoull(text, &end, 10);
    return end == text ? otherwise : number;  // "max"
  }
  return otherwise;
}

// What the files of control groups are called, in either version.
struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimed;  // in memory.stat: pages of files, which are given up first
};
constexpr Names version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr Names version_2{"memory.max", "memory.current", "inactive_file "};

std::size_t left_in_group(const std::filesystem::path& folder, const Names& names) {
  const std::size_t limit = number_after(folder / names.limit, "", unlimited);
  const std::size_t usage = number_after(folder / names.usage, "", unlimited);
  if (limit == unlimited || usage == unlimited) return unlimited;
  const std::size_t used = usage - std::min(usage, number_after(folder / "memory.stat", names.reclaimed, 0));
  return limit - std::min(limit, used);
}

// The group and all around it. In a container the folder is often that of the group itself, whatever its name outside.
std::size_t left_in_groups(const std::filesystem::path& top, const std::string& group, const Names& names) {
  std::size_t left = left_in_group(top, names);
  std::filesystem::path folder = top;
  for (const auto& part : std::filesystem::path(group).relative_path())
    left = std::min(left, left_in_group(folder /= part, names));
  return left;
}

}  // namespace

std::size_t available_host_memory(const std::filesystem::path& root) {
  const std::filesystem::path meminfo = root / "proc/meminfo";
  const std::size_t kibibytes = number_after(meminfo, "MemAvailable:", unlimited);
  std::size_t left = kibibytes == unlimited ? unlimited : (kibibytes + number_after(meminfo, "SwapFree:", 0)) * 1024;
  const std::filesystem::path groups = root / "sys/fs/cgroup";
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {  // 4:memory:/job, or 0::/job
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers.find(",memory,") != controllers.npos) {
      left = std::min(left, left_in_groups(groups / "memory", group, version_1));
    } else if (controllers == ",,") {
      left = std::min(left, left_in_groups(groups, group, version_2));
    }
  }
  return left;
}

}  // namespace trireme::device
