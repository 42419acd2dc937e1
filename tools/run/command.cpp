#include "command.hpp"

#include <cstdlib>

std::optional<std::string> option_of(const Command& command, std::string_view option) {
  std::optional<std::string> value;
  for (std::size_t index = 0; index < command.size(); ++index) {
    const std::string& word = command[index];
    if (word == option && index + 1 < command.size()) value = command[index + 1];
    if (word.starts_with(std::string(option) + '=')) value = word.substr(option.size() + 1);
  }
  return value;
}

std::string resume_of(const Command& command) {
  if (const char* resume = std::getenv("TRIREME_RESUME")) return resume;
  return option_of(command, "--resume").value_or("auto");
}
