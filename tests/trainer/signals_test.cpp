#include "trainer/signals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

// Kernels of oneDNN use the stack pointer for other purposes: a handler on the thread's own stack would write into the heap.
TEST_CASE("handlers of signals run on a stack of their own, in each thread that listens") {
  const auto listen = [] {
    trainer::listen_for_signals();
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE}) CHECK(has_own_stack(signal));
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

TEST_CASE("a signal that was ignored stays so") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGPIPE}) {
    INFO(signal);
    std::signal(signal, SIG_IGN);
    trainer::listen_for_signals();
    std::raise(signal);
    CHECK(!trainer::signal_asks_to_stop());
    trainer::stop_listening();
    struct sigaction after {};
    sigaction(signal, nullptr, &after);
    CHECK(after.sa_handler == SIG_IGN);
    std::signal(signal, SIG_DFL);
  }
}

TEST_CASE("a second SIGHUP does not end the process") {
  trainer::listen_for_signals();
  std::raise(SIGHUP);
  std::raise(SIGHUP);
  CHECK(trainer::signal_asks_to_stop());
  trainer::forget_signals();
  trainer::stop_listening();
}

TEST_CASE("a pipe that nobody reads is no reason to stop") {
  const auto write_to_closed_pipe = [] {
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    close(ends[0]);
    CHECK(write(ends[1], "line\n", 5) == -1);
    CHECK(errno == EPIPE);
    close(ends[1]);
    CHECK(!trainer::signal_asks_to_stop());
  };
  trainer::listen_for_signals();
  write_to_closed_pipe();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) _exit(kill(parent, SIGPIPE));
  waitpid(child, nullptr, 0);
  CHECK(trainer::signal_asks_to_stop());
  trainer::forget_signals();
  trainer::stop_listening();
  trainer::outlive_closed_pipes();
  write_to_closed_pipe();
  trainer::listen_for_signals();
  trainer::stop_listening();
  write_to_closed_pipe();
  std::signal(SIGPIPE, SIG_DFL);
}
