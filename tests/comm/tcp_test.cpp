#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/launch.hpp"
#include "comm/tcp/socket.hpp"

// Ranks as processes that meet at rank 0's port. No test framework: every rank is a fork of this process.
namespace {

using namespace std::chrono_literals;
using trireme::Error;
using trireme::Group;
using trireme::LaunchOptions;
using trireme::comm::Socket;

using Main = std::function<int(const Group&)>;
using Clock = std::chrono::steady_clock;

constexpr int killed = 128 + SIGKILL;

int failures = 0;
int next_port = 20000 + static_cast<int>(getpid()) % 12000;

void check(bool ok, const std::string& what) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

int free_port() {
  for (;; ++next_port) {
    try {
      trireme::comm::listen_on(next_port);
      return next_port++;
    } catch (const Error&) {  // taken
    }
  }
}

// The exit code of one rank, in a process of its own.
int run_rank(int rank, int size, int port, const LaunchOptions& options, const Main& main) {
  try {
    const int code = trireme::comm::launch_tcp(options,
                                               {.start_up = trireme::StartUp::torchrun,
                                                .rank = rank,
                                                .size = size,
                                                .local_size = size,
                                                .address = "127.0.0.1",
                                                .port = port},
                                               main);
    return trireme::test::failed_checks > 0 ? 100 : code;
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return error.code() == trireme::ErrorCode::timeout ? 3 : 99;
  }
}

// Exit codes of those of `size` ranks that come, by rank; -1: never came. `meanwhile` gets the port where they meet.
std::vector<int> run(int size, const LaunchOptions& options, const Main& main, int absent = -1,
                     const std::function<void(int port)>& meanwhile = {}) {
  const int port = free_port();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t process = rank == absent ? 0 : fork();
    if (process == 0 && rank != absent) _exit(run_rank(rank, size, port, options, main));
    processes.push_back(process);
  }
  if (meanwhile) meanwhile(port);
  std::vector<int> codes;
  for (const pid_t process : processes) {
    int status = -1;
    if (process > 0) waitpid(process, &status, 0);
    codes.push_back(process == 0 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
  return codes;
}

bool all_are(const std::vector<int>& codes, int code) {
  return std::all_of(codes.begin(), codes.end(), [code](int one) { return one == code; });
}

void check_suite() {
  for (const int ranks : {2, 4}) {
    for (const auto& one : trireme::test::conformance_cases()) {
      const auto codes = run(ranks, {}, [&one](const Group& world) {
        one.check(world);
        return 0;
      });
      check(all_are(codes, 0), fmt::format("{} with {} ranks", one.name, ranks));
    }
  }
  for (const int ranks : {2, 3}) {
    for (const auto& one : trireme::test::failure_cases()) {
      if (ranks < one.least_ranks) continue;
      const auto codes = run(ranks, {.deadline = one.deadline}, one.run);
      check(all_are(codes, one.exit_code), fmt::format("{} with {} ranks", one.name, ranks));
    }
  }
}

void check_missing_rank() {
  for (const int absent : {0, 2}) {
    const auto begin = Clock::now();
    const auto codes = run(
        3, {.deadline = 500ms}, [](const Group&) { return 0; }, absent);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank != absent)
        check(codes[static_cast<std::size_t>(rank)] == 3, fmt::format("rank {} does not wait for {}", rank, absent));
    }
    check(Clock::now() - begin < 10s, "a rank that never comes is missed within the deadline");
  }
}

// All ranks are in a call when one is killed.
void check_killed_rank() {
  for (const int victim : {0, 1}) {
    const auto begin = Clock::now();
    const auto codes = run(3, {}, [victim](const Group& world) {
      world.barrier("together");
      if (world.rank() == victim) raise(SIGKILL);
      const std::string text = fmt::format("the process of rank {} is gone", victim);
      throw trireme::test::expect_error(
          trireme::ErrorCode::peer_failed, [&] { world.barrier("after"); }, text.c_str());
      return 0;
    });
    for (int rank = 0; rank < 3; ++rank) {
      check(codes[static_cast<std::size_t>(rank)] == (rank == victim ? killed : 1),
            fmt::format("rank {} outlives {}", rank, victim));
    }
    check(Clock::now() - begin < 20s, "a killed rank is noticed at once");
  }
}

// Who connects and says nothing, before the ranks have met or after it, does not keep them waiting.
void check_silent_stranger() {
  Socket stranger;
  const auto codes = run(
      3, {.deadline = 5s},
      [](const Group& world) {
        for (int i = 0; i < 50; ++i) {
          world.barrier("beside a stranger");
          std::this_thread::sleep_for(10ms);
        }
        return 0;
      },
      -1, [&stranger](int port) { stranger = trireme::comm::connect_to("127.0.0.1", port, 5s); });
  check(all_are(codes, 0), "ranks do not wait for a stranger");
}

// A rank that computes on and on after another has failed is ended.
void check_stuck_rank() {
  const auto codes = run(2, {.deadline = 200ms}, [](const Group& world) {
    world.barrier("together");
    if (world.rank() == 0) throw std::runtime_error("boom");
    for (;;) std::this_thread::sleep_for(1h);
    return 0;
  });
  check(all_are(codes, 1), "a stuck rank is ended");
}

// A socket that connects to its own port, as the system lets one that comes before rank 0 listens.
void check_connected_to_itself() {
  const int port = free_port();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const Socket alone(socket(AF_INET, SOCK_STREAM, 0));
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  check(bind(alone.descriptor(), at, sizeof(address)) == 0 && connect(alone.descriptor(), at, sizeof(address)) == 0,
        "a socket connects to itself");
  check(trireme::comm::is_connected_to_itself(alone), "a socket at both ends is known");

  const int other = free_port();
  const Socket listener = trireme::comm::listen_on(other);
  const Socket connected = trireme::comm::connect_to("127.0.0.1", other, 1s);
  check(!trireme::comm::is_connected_to_itself(connected), "a connection to another socket is one");
}

}  // namespace

int main() {
  setenv("TRIREME_RANKS_PER_NODE", "1", 1);  // the suite's word for ranks that share no memory
  check_connected_to_itself();
  check_suite();
  check_missing_rank();
  check_killed_rank();
  check_stuck_rank();
  check_silent_stranger();
  return failures == 0 ? 0 : 1;
}
