#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// What Linux says of a process or of one of its threads.
struct ProcessStatus {
  char state = '?';  // as in /proc: R runs, S and D sleep, T is stopped, Z is a zombie
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start = 0;  // ticks after the boot
};

// Of a process of this machine; nothing when there is none, or it ends just now.
std::optional<ProcessStatus> status_of(std::int64_t process);
std::optional<ProcessStatus> status_of(std::int64_t process, std::int64_t thread);

// The same where the same process numbers mean the same processes, until the next boot. Empty where the system does not say.
std::string space_of_processes();
// The same where 127.0.0.1 leads to the same sockets, likewise: containers of one machine may share one and not the other.
std::string space_of_network();

// The text of a file that the system makes while it is read, as those of /proc: its size is unknown, and it may be gone between
// two reads. Nothing when it can't be read to its end.
std::optional<std::string> read_system_text(const std::filesystem::path& path);

}  // namespace trireme
