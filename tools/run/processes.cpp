#include "processes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

std::vector<LivingProcess> living_processes() {
  std::vector<LivingProcess> living;
  std::error_code failure;
  for (auto entry = fs::directory_iterator("/proc", failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    LivingProcess process;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process.id);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const std::string text = content_of(entry->path() / "stat");
    const std::size_t name_end = text.rfind(')');  // the second field is the program's name
    if (name_end == std::string::npos) continue;   // it is gone
    std::istringstream rest(text.substr(name_end + 1));
    char state = 0;
    pid_t group = 0;
    rest >> state >> process.parent >> group >> process.session;
    std::string field;
    for (int number = 7; number <= 21; ++number) rest >> field;
    rest >> process.start;
    if (rest && state != 'Z' && state != 'X') living.push_back(process);
  }
  return living;
}

}  // namespace

std::vector<LivingProcess> family_of(pid_t head) {
  std::multimap<pid_t, LivingProcess> by_parent;
  std::vector<LivingProcess> found;
  for (const LivingProcess& process : living_processes()) {
    by_parent.emplace(process.parent, process);
    if (process.id == head) found.push_back(process);
  }
  const auto add_children = [&](pid_t parent) {
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  };
  if (found.empty()) add_children(head);
  for (std::size_t next = 0; next < found.size(); ++next) add_children(found[next].id);
  return found;
}

bool has_variable(pid_t process, std::string_view text) {
  std::string environment = '\0' + content_of(fmt::format("/proc/{}/environ", process)) + '\0';
  const std::string end = text.ends_with('=') ? "" : std::string(1, '\0');
  return environment.find('\0' + std::string(text) + end) != std::string::npos;
}

bool is_rank(pid_t process) { return has_variable(process, "OMPI_COMM_WORLD_RANK=") || has_variable(process, "PMI_RANK="); }

void adopt_descendants() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void kill_children(const std::function<bool(const LivingProcess&)>& is_own) {
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    bool any = false;
    for (const LivingProcess& process : living_processes()) {
      if (process.parent != getpid() || !is_own(process)) continue;
      kill(process.id, SIGKILL);
      any = true;
    }
    if (!any) return;
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
    nanosleep(&pause, nullptr);
  }
}
