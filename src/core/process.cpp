#include "core/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <system_error>

namespace trireme {
namespace {

std::optional<ProcessStatus> parse_status(const std::string& text) {
  const std::size_t name_end = text.rfind(')');  // the second field, the program's name, ends with the last ')'
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  ProcessStatus status;
  pid_t group = 0;
  rest >> status.state >> status.parent >> group >> status.session;
  std::string field;
  for (int number = 7; number <= 21; ++number) rest >> field;
  rest >> status.start;
  return rest ? std::optional(status) : std::nullopt;
}

// Identifies the process's namespace of this kind, and the boot.
std::string space_of(std::string_view kind) {
  const std::string boot = read_system_text("/proc/sys/kernel/random/boot_id").value_or("");
  std::error_code unknown;
  const std::filesystem::path space = std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind), unknown);
  return boot.empty() || unknown ? "" : fmt::format("{} {}", boot.substr(0, boot.find('\n')), space.string());
}

}  // namespace

std::optional<std::string> read_system_text(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  ssize_t count = 0;
  do {
    count = ::read(descriptor, part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
  } while (count > 0 || (count < 0 && errno == EINTR));
  ::close(descriptor);
  return count == 0 ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<ProcessStatus> status_of(std::int64_t process) {
  return parse_status(read_system_text(fmt::format("/proc/{}/stat", process)).value_or(""));
}

std::optional<ProcessStatus> status_of(std::int64_t process, std::int64_t thread) {
  return parse_status(read_system_text(fmt::format("/proc/{}/task/{}/stat", process, thread)).value_or(""));
}

std::string space_of_processes() { return space_of("pid"); }

std::string space_of_network() { return space_of("net"); }

}  // namespace trireme
