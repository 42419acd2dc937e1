#include "comm/flight/flight_signals.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "core/process.hpp"

namespace trireme::comm {
namespace {

constexpr std::array watched_signals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

std::array<std::atomic<FlightHeader*>, 1024> headers{};
std::array<struct sigaction, watched_signals.size()> before{};
std::mutex mutex;
int num_watched = 0;

void note(int signal) {
  const auto thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  for (auto& place : headers) {
    FlightHeader* header = place.load();
    if (header == nullptr || header->signal != 0) continue;
    std::atomic_ref(header->signalled).store(header->thread == thread ? 1 : 0);
    std::atomic_ref(header->signal).store(signal);
  }
}

void on_signal(int signal, siginfo_t* info, void*) {
  note(signal);
  for (std::size_t index = 0; index < watched_signals.size(); ++index) {
    if (watched_signals[index] == signal) sigaction(signal, &before[index], nullptr);
  }
  // The previous handler runs once this one returns. A fault occurs again by itself, with its address.
  const bool is_fault = info->si_code > 0 && (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL);
  if (!is_fault) raise(signal);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t index = 0; index < watched_signals.size(); ++index) {
    sigaction(watched_signals[index], nullptr, &before[index]);
    const bool ignored = (before[index].sa_flags & SA_SIGINFO) == 0 && before[index].sa_handler == SIG_IGN;
    if (!ignored) sigaction(watched_signals[index], &action, nullptr);
  }
}

void uninstall() {
  for (std::size_t index = 0; index < watched_signals.size(); ++index) {
    struct sigaction current {};
    sigaction(watched_signals[index], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_signal) {
      sigaction(watched_signals[index], &before[index], nullptr);
    }
  }
}

}  // namespace

void watch_signals(FlightHeader* header) {
  const std::lock_guard lock(mutex);
  for (auto& place : headers) {
    if (place.load() != nullptr) continue;
    place.store(header);
    if (num_watched++ == 0) install();
    return;
  }
}

void unwatch_signals(FlightHeader* header) {
  const std::lock_guard lock(mutex);
  for (auto& place : headers) {
    if (place.load() != header) continue;
    place.store(nullptr);
    if (--num_watched == 0) uninstall();
    return;
  }
}

std::uint64_t this_machine() { return std::hash<std::string>{}(space_of_processes()); }

}  // namespace trireme::comm
