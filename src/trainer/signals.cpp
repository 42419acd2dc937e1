#include "trainer/signals.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <vector>

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

std::atomic<int> listeners = 0;  // runs in this process, one per rank that is a thread
static_assert(std::atomic<int>::is_always_lock_free);

// A SIGPIPE for writing to a closed pipe has this process as its sender; it is ignored.
void ask_if_sent(int signal, siginfo_t* about, void*) {
  if (about->si_code == SI_USER && about->si_pid == getpid()) return;
  if (listeners.load(std::memory_order_relaxed) > 0) return ask(signal);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Handled {
  int signal;
  struct sigaction ours;
  struct sigaction before;
  bool is_taken;
};

struct sigaction on_signal(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  return action;
}

struct sigaction on_closed_pipe() {
  struct sigaction action {};
  action.sa_sigaction = ask_if_sent;
  action.sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO;
  return action;
}

// A stack of its own for this thread's signal handlers. Some of oneDNN's kernels for matrix products (seen with 2.6) let the
// stack pointer point into the heap, where a handler without its own stack would overwrite data.
class AlternateStack {
 public:
  AlternateStack() {
    stack_t before{};
    if (sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;  // there is one
    memory_.resize(static_cast<std::size_t>(std::max(sysconf(_SC_SIGSTKSZ), 1L << 16)));
    stack_t own{};
    own.ss_sp = memory_.data();
    own.ss_size = memory_.size();
    sigaltstack(&own, nullptr);
  }
  ~AlternateStack() {
    if (memory_.empty()) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  std::vector<std::byte> memory_;
};

std::mutex mutex;
// A terminal that closes may send SIGHUP twice: the second one does not end the process.
std::array<Handled, 5> all_handled{{{SIGINT, on_signal(ask_or_end), {}, false},
                                    {SIGTERM, on_signal(ask_or_end), {}, false},
                                    {SIGUSR1, on_signal(ask), {}, false},
                                    {SIGHUP, on_signal(ask), {}, false},
                                    {SIGPIPE, on_closed_pipe(), {}, false}}};

}  // namespace

void listen_for_signals() {
  thread_local const AlternateStack stack;
  const std::lock_guard lock(mutex);
  if (listeners++ > 0) return;
  for (Handled& handled : all_handled) {
    sigaction(handled.signal, nullptr, &handled.before);
    handled.is_taken = handled.before.sa_handler != SIG_IGN;
    if (handled.is_taken) sigaction(handled.signal, &handled.ours, nullptr);
  }
}

void stop_listening() {
  const std::lock_guard lock(mutex);
  if (--listeners > 0) return;
  for (const Handled& handled : all_handled) {
    if (handled.is_taken) sigaction(handled.signal, &handled.before, nullptr);
  }
}

void outlive_closed_pipes() {
  struct sigaction before {};
  sigaction(SIGPIPE, nullptr, &before);
  if (before.sa_handler != SIG_DFL) return;
  const struct sigaction ours = on_closed_pipe();
  sigaction(SIGPIPE, &ours, nullptr);
}

bool signal_asks_to_stop() { return asked.load(std::memory_order_relaxed); }

void forget_signals() { asked.store(false, std::memory_order_relaxed); }

}  // namespace trireme::trainer
