#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The status of a process or thread, from /proc.
struct ProcessStatus {
  char state = '?';  // as in /proc: R runs, S and D sleep, T is stopped, Z is a zombie
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start = 0;  // in clock ticks since boot
};

// The status of a process of this machine. std::nullopt if it does not exist or is just ending.
std::optional<ProcessStatus> status_of(std::int64_t process);
std::optional<ProcessStatus> status_of(std::int64_t process, std::int64_t thread);

// Identifies the PID namespace until the next boot: two processes with the same text see the same process ids. Empty where the
// system does not tell.
std::string space_of_processes();
// Likewise the network namespace: two processes with the same text share 127.0.0.1. Containers of one machine may share only
// one of the two namespaces.
std::string space_of_network();

// Reads a file that the system generates, such as those in /proc: its size is unknown, and it may vanish between two reads.
// std::nullopt if it can't be read to its end.
std::optional<std::string> read_system_text(const std::filesystem::path& path);

}  // namespace trireme
