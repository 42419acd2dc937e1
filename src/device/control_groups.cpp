#include "device/control_groups.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace trireme::device {

std::size_t number_after(const std::filesystem::path& file, std::string_view word, std::size_t otherwise) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(word)) continue;
    const char* text = line.c_str() + word.size();
    char* end = nullptr;
    const unsigned long long number = std::strtoull(text, &end, 10);
    return end == text ? otherwise : number;
  }
  return otherwise;
}

void for_each_control_group(const std::filesystem::path& root, std::string_view controller,
                            const std::function<void(const std::filesystem::path& folder, int version)>& visit) {
  const std::filesystem::path groups = root / "sys/fs/cgroup";
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {  // for example 4:memory:/job, or 0::/job
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const int version = controllers == ",," ? 2 : 1;
    if (version == 1 && controllers.find(fmt::format(",{},", controller)) == controllers.npos) continue;
    std::filesystem::path folder = version == 2 ? groups : groups / controller;
    visit(folder, version);
    for (const auto& part : std::filesystem::path(line.substr(second + 1)).relative_path()) visit(folder /= part, version);
  }
}

}  // namespace trireme::device
