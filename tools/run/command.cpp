#include "command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

constexpr std::array launchers = {"mpirun", "mpiexec", "orterun", "prterun", "prun", "srun"};

std::string with_hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::optional<std::string> given(const Command& command, std::string_view option) {
  std::optional<std::string> value;
  for (std::size_t index = 0; index < command.size(); ++index) {
    const std::string& word = command[index];
    const std::size_t end = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || with_hyphens(word.substr(0, end)) != option) continue;
    if (end < word.size()) {
      value = word.substr(end + 1);
    } else if (index + 1 < command.size()) {
      value = command[++index];
    }
  }
  return value;
}

// Returns nothing if the file can't be read: the trainer itself reports that.
std::optional<std::string> configured(const std::string& path, std::string_view option) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::optional<std::string> value;
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(file)) {
      if ("--" + with_hyphens(item.name) == option && !item.inputs.empty()) value = item.inputs.back();
    }
  } catch (const CLI::Error&) {
  }
  return value;
}

}  // namespace

std::optional<std::string> option_of(const Command& command, std::string_view option) {
  if (auto value = given(command, option)) return value;
  const auto config = given(command, "--config");
  return config ? configured(*config, option) : std::nullopt;
}

bool names_launcher(const Command& command) {
  return std::ranges::any_of(command, [](const std::string& word) {
    const std::string name = std::filesystem::path(word).filename();
    return std::ranges::any_of(launchers, [&](std::string_view launcher) {
      return name == launcher || name.starts_with(std::string(launcher) + '.');  // mpirun.openmpi, mpiexec.hydra
    });
  });
}

std::string resume_of(const Command& command) {
  if (const char* resume = std::getenv("TRIREME_RESUME")) return resume;
  return option_of(command, "--resume").value_or("auto");
}
