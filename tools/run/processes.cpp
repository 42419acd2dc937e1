#include "processes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The children of every process.
std::map<pid_t, std::vector<pid_t>> family() {
  std::map<pid_t, std::vector<pid_t>> children;
  std::error_code failure;
  for (auto entry = fs::directory_iterator("/proc", failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    pid_t process = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const std::string text = content_of(entry->path() / "stat");
    const std::size_t name_end = text.rfind(')');  // the second field is the program's name
    if (name_end == std::string::npos) continue;   // it is gone
    std::istringstream rest(text.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    rest >> state >> parent;
    if (rest && state != 'Z' && state != 'X') children[parent].push_back(process);
  }
  return children;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t ancestor) {
  auto children = family();
  std::vector<pid_t> found = children[ancestor];
  for (std::size_t next = 0; next < found.size(); ++next) {
    const std::vector<pid_t>& more = children[found[next]];
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

bool is_rank(pid_t process) {
  const std::string environment = '\0' + content_of(fmt::format("/proc/{}/environ", process));
  return std::ranges::any_of(std::array{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="}, [&](const char* variable) {
    return environment.find('\0' + std::string(variable)) != std::string::npos;
  });
}

void adopt_descendants() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_descendants() {
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = descendants_of(getpid());
    if (left.empty()) return;
    for (const pid_t process : left) kill(process, SIGKILL);
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
    nanosleep(&pause, nullptr);
  }
}
