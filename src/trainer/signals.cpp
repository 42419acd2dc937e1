#include "trainer/signals.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

namespace trireme::trainer {

namespace {

std::atomic<bool> asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void ask(int) { asked.store(true, std::memory_order_relaxed); }

void ask_or_end(int signal) {
  if (!asked.exchange(true, std::memory_order_relaxed)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // delivered when this handler returns
}

struct Handled {
  int signal;
  void (*handler)(int);
  struct sigaction before;
};
std::mutex mutex;
int listeners = 0;  // runs of this process, of ranks that are threads too
std::array<Handled, 3> all_handled{{{SIGINT, ask_or_end, {}}, {SIGTERM, ask_or_end, {}}, {SIGUSR1, ask, {}}}};

}  // namespace

void listen_for_signals() {
  const std::lock_guard lock(mutex);
  if (listeners++ > 0) return;
  for (Handled& handled : all_handled) {
    struct sigaction action {};
    action.sa_handler = handled.handler;
    action.sa_flags = SA_RESTART;
    sigaction(handled.signal, &action, &handled.before);
  }
}

void stop_listening() {
  const std::lock_guard lock(mutex);
  if (--listeners > 0) return;
  for (const Handled& handled : all_handled) sigaction(handled.signal, &handled.before, nullptr);
}

bool signal_asks_to_stop() { return asked.load(std::memory_order_relaxed); }

void forget_signals() { asked.store(false, std::memory_order_relaxed); }

}  // namespace trireme::trainer
