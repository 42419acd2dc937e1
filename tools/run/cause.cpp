#include "cause.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "trireme/core/exit_code.hpp"

namespace {

constexpr int signal_base = 128;   // a shell's exit code for signal n is 128 + n
constexpr int cannot_start = 127;  // a shell's exit code for a command that can't be started
constexpr int killed = signal_base + SIGKILL;
constexpr int terminated = signal_base + SIGTERM;
constexpr int asked_to_stop = signal_base + SIGUSR1;
constexpr int highest_of_signals = signal_base + 64;
constexpr int lost_machine = 205;  // exit code of mpirun of Open MPI 4.1

// When mpirun was told to end its ranks, it returns 1 or dies of the signal, no matter what the ranks returned.
constexpr std::array codes_of_stopped_launchers = {
    1, killed, terminated, asked_to_stop, signal_base + SIGINT, signal_base + SIGHUP};

// The number after "oom_kill" in a file of words and numbers.
std::optional<std::uint64_t> kills_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t number = 0;
  while (file >> word >> number) {
    if (word == "oom_kill") return number;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::finished: return "finished";
    case Cause::stopped: return "stopped";
    case Cause::configuration: return "configuration error";
    case Cause::launch: return "launch failure";
    case Cause::crash: return "crash";
    case Cause::hang: return "hang";
    case Cause::diverged: return "diverged";
    case Cause::out_of_memory: return "out of memory";
    case Cause::killed: return "killed";
  }
  return "unknown";
}

int exit_code_of(const Ending& ending) {
  if (ending.start_error != 0) return cannot_start;
  if (!ending.status) return killed;
  return WIFSIGNALED(*ending.status) ? signal_base + WTERMSIG(*ending.status) : WEXITSTATUS(*ending.status);
}

std::string text_of(const Ending& ending) {
  if (ending.start_error != 0) return std::generic_category().message(ending.start_error);
  if (ending.stuck) return "the launcher went on without ranks and was killed";
  const int code = exit_code_of(ending);
  if (code == lost_machine) return fmt::format("exit code {} (mpirun has lost a machine)", code);
  const char* signal = code > signal_base ? sigabbrev_np(code - signal_base) : nullptr;
  return signal == nullptr ? fmt::format("exit code {}", code) : fmt::format("exit code {} (SIG{})", code, signal);
}

std::uint64_t num_kills_for_memory() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    if (const auto kills = kills_in("/sys/fs/cgroup" + line.substr(3) + "/memory.events")) return *kills;
  }
  return kills_in("/proc/vmstat").value_or(0);
}

bool tells_of_rank(const std::deque<std::string>& lines) {
  return std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("exited with non-zero status") != std::string::npos || line.find("exited on signal") != std::string::npos;
  });
}

bool ended_early(const Ending& ending, const Witness& witness) {
  const auto& status = witness.status;
  if (exit_code_of(ending) != 0 || (status && status->state == trireme::RunState::stopped)) return false;
  return !witness.all_returned || (status && status->state == trireme::RunState::training);
}

Cause cause_of(const Ending& ending, const Witness& witness) {
  using trireme::ExitCode;
  using trireme::RunState;
  const auto& status = witness.status;
  const int code = exit_code_of(ending);
  if (ending.start_error != 0) return Cause::configuration;
  if (status && status->state == RunState::stopped) return Cause::stopped;
  // Before its first step the job has nothing to save: it ends successfully, or dies of the signal that asked it to stop.
  if (witness.asked && !witness.begun && !status && !witness.forced && (code == 0 || code == asked_to_stop))
    return Cause::stopped;
  // mpirun dies of the signal that asked it to stop if its ranks have just ended.
  if (witness.asked && status && status->state == RunState::finished && code == asked_to_stop) return Cause::finished;
  if (ending.stuck) return Cause::hang;
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::success: return ended_early(ending, witness) ? Cause::killed : Cause::finished;
    case ExitCode::configuration:
      if (witness.begun) break;  // a disk or a file failed during the run
      return Cause::configuration;
    case ExitCode::timeout: return Cause::hang;
    case ExitCode::out_of_memory: return Cause::out_of_memory;
    case ExitCode::diverged: return Cause::diverged;
    case ExitCode::failure: break;
  }
  if (code == killed && witness.kills > 0) return Cause::out_of_memory;
  if (code == killed || code == terminated || code == lost_machine) return Cause::killed;
  const bool had_ranks = witness.begun || witness.had_ranks || ending.had_ranks;
  const bool of_launcher = code == static_cast<int>(ExitCode::failure) || code > highest_of_signals;
  return witness.has_launcher && of_launcher && !had_ranks ? Cause::launch : Cause::crash;
}

int reported_code(Cause cause, int code) {
  switch (cause) {
    case Cause::finished: return 0;
    case Cause::stopped:
      return std::ranges::find(codes_of_stopped_launchers, code) == codes_of_stopped_launchers.end() ? code : 0;
    case Cause::launch: return launch_failure;
    default: return code;
  }
}
