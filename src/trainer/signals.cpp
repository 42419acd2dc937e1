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

struct Handled {
  int signal;
  void (*handler)(int);
  struct sigaction before;
};
// Where this thread's handlers run. Some of oneDNN's kernels for matrix products (seen with 2.6) use the stack pointer for
// other things: on the thread's own stack the system would write a signal's frame into what it points at, the heap.
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
int listeners = 0;  // runs of this process, of ranks that are threads too
std::array<Handled, 3> all_handled{{{SIGINT, ask_or_end, {}}, {SIGTERM, ask_or_end, {}}, {SIGUSR1, ask, {}}}};

}  // namespace

void listen_for_signals() {
  thread_local const AlternateStack stack;
  const std::lock_guard lock(mutex);
  if (listeners++ > 0) return;
  for (Handled& handled : all_handled) {
    struct sigaction action {};
    action.sa_handler = handled.handler;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
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
