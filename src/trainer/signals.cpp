#include "trainer/signals.hpp"

#include <atomic>
#include <csignal>

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

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void listen_for_signals() {
  handle(SIGINT, ask_or_end);
  handle(SIGTERM, ask_or_end);
  handle(SIGUSR1, ask);
}

bool signal_asks_to_stop() { return asked.load(std::memory_order_relaxed); }

void forget_signals() { asked.store(false, std::memory_order_relaxed); }

}  // namespace trireme::trainer
