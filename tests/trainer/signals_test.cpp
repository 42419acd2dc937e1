#include "trainer/signals.hpp"

#include <csignal>
#include <thread>

#include "catch.hpp"

using namespace trireme;

namespace {

// Whether a handler of this thread runs on a stack of its own.
bool has_own_stack(int signal) {
  struct sigaction action {};
  stack_t stack{};
  sigaction(signal, nullptr, &action);
  sigaltstack(nullptr, &stack);
  return (action.sa_flags & SA_ONSTACK) != 0 && (stack.ss_flags & SS_DISABLE) == 0 && stack.ss_size >= 1 << 15;
}

}  // namespace

// Kernels of oneDNN use the stack pointer for other things: a handler on the thread's own stack writes into the heap then.
TEST_CASE("handlers of signals run on a stack of their own, in each thread that listens") {
  const auto listen = [] {
    trainer::listen_for_signals();
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) CHECK(has_own_stack(signal));
    std::raise(SIGUSR1);
    CHECK(trainer::signal_asks_to_stop());
    trainer::forget_signals();
    trainer::stop_listening();
  };
  listen();
  std::thread(listen).join();
  listen();
  CHECK(!has_own_stack(SIGUSR1));
}
