#include "processes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string>

#include "core/process.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<LivingProcess> living_processes() {
  std::vector<LivingProcess> living;
  std::error_code failure;
  for (auto entry = fs::directory_iterator("/proc", failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const std::string name = entry->path().filename();
    pid_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const auto status = trireme::status_of(id);
    if (!status || status->state == 'Z' || status->state == 'X') continue;
    living.push_back({.id = id, .parent = status->parent, .session = status->session, .start = status->start});
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
  const auto variables = trireme::read_system_text(fmt::format("/proc/{}/environ", process));
  if (!variables) return false;
  const std::string environment = '\0' + *variables + '\0';
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
