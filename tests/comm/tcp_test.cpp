#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/conformance.hpp"
#include "comm/expect.hpp"
#include "comm/launch/launch.hpp"
#include "comm/tcp/frame.hpp"
#include "comm/tcp/hub_link.hpp"
#include "comm/tcp/proof.hpp"

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

// Exit codes of those of `size` ranks that come, by rank; -1: never came. `meanwhile` gets the port where they meet; `late`
// comes after it.
std::vector<int> run(int size, const LaunchOptions& options, const Main& main, int absent = -1,
                     const std::function<void(int port)>& meanwhile = {}, int late = -1) {
  const int port = free_port();
  std::vector<pid_t> processes(static_cast<std::size_t>(size));
  const auto start = [&](int rank) {
    const pid_t process = fork();
    if (process == 0) _exit(run_rank(rank, size, port, options, main));
    processes[static_cast<std::size_t>(rank)] = process;
  };
  for (int rank = 0; rank < size; ++rank) {
    if (rank != absent && rank != late) start(rank);
  }
  if (meanwhile) meanwhile(port);
  if (late >= 0) start(late);
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

// A silent connection does not delay the ranks, neither before they have met nor after.
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
      -1, [&stranger](int port) { stranger = trireme::comm::connect_to("127.0.0.1", port, 5s); }, 2);
  check(all_are(codes, 0), "ranks do not wait for a stranger");
}

// More of them than rank 0 may have open files.
void check_many_silent_strangers() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<Socket> strangers;
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);  // of rank 0, which is forked first
  const auto codes = run(
      2, {.deadline = 8s},
      [](const Group& world) {
        world.barrier("after the strangers");
        return 0;
      },
      -1,
      [&](int port) {
        setrlimit(RLIMIT_NOFILE, &before);
        for (int count = 0; count < 200; ++count) strangers.push_back(trireme::comm::connect_to("127.0.0.1", port, 5s));
      },
      1);
  check(all_are(codes, 0), "silent strangers leave room for the ranks");
}

// Ranks do not join a listener that takes rank 0's place without the secret.
void check_false_hub() {
  using namespace trireme::comm;
  const int port = free_port();
  const Socket listener = listen_on(port);
  const pid_t rank = fork();
  if (rank == 0) {
    const HubPlace place{.address = "127.0.0.1", .port = port, .rank = 1, .size = 2, .secret = "of the job"};
    try {
      const HubLink link(place, 2s);
    } catch (const Error& error) {
      _exit(std::strstr(error.what(), "does not know this job's TRIREME_JOB_SECRET") != nullptr ? 0 : 1);
    }
    _exit(2);
  }
  check(wait_for_input(listener, 5s), "the rank comes");
  FrameConnection connection(listener.accept());
  connection.send({.kind = FrameKind::challenge}, make_challenge());
  connection.send({.kind = FrameKind::welcome}, make_challenge());
  int status = -1;
  waitpid(rank, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a hub that does not know the secret is refused");
}

// A proxy in front of rank 0 takes connections before rank 0 is there: one ends, one is silent.
void check_late_hub() {
  using namespace trireme::comm;
  const int port = free_port();
  const Socket listener = listen_on(port);
  const pid_t rank = fork();
  if (rank == 0) {
    const HubPlace place{.address = "127.0.0.1", .port = port, .rank = 1, .size = 2, .secret = "of the job"};
    try {
      const HubLink link(place, 30s);
      _exit(0);
    } catch (const Error&) {
      _exit(1);
    }
  }
  listener.accept();
  const Socket silent = listener.accept();
  check(wait_for_input(listener, 10s), "the rank comes once more");
  FrameConnection connection(listener.accept());
  Challenges challenges{.of_hub = make_challenge()};
  connection.send({.kind = FrameKind::challenge}, challenges.of_hub);
  std::optional<Frame> hello;
  while (!hello && wait_for_input(connection.socket(), 5s) && connection.receive()) hello = connection.next();
  check(hello && hello->data.size() >= sizeof(Sha256), "the rank says who it is");
  if (hello) std::copy_n(hello->data.begin(), sizeof(Sha256), challenges.of_rank.begin());
  connection.send({.kind = FrameKind::welcome}, proof_of("of the job", Prover::hub, challenges, 1, 2));
  int status = -1;
  waitpid(rank, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a rank meets a hub that a proxy announced too early");
}

// A connection that sends arbitrary bytes.
class Stranger {
 public:
  explicit Stranger(int port) : connection_(trireme::comm::connect_to("127.0.0.1", port, 5s)) {}

  void say(std::span<const std::byte> bytes) { connection_.socket().send(bytes); }

  // The hub's next answer; nothing: it has closed the connection, or does not answer.
  std::optional<trireme::comm::Frame> hear() {
    for (const auto end = Clock::now() + 5s; Clock::now() < end;) {
      if (auto frame = connection_.next()) return frame;
      if (trireme::comm::wait_for_input(connection_.socket(), 20ms) && !connection_.receive()) break;
    }
    return connection_.next();
  }

 private:
  trireme::comm::FrameConnection connection_;
};

// Other connections come to the port before the last rank does: the ranks still meet, and train.
void check_hostile_clients(const std::string& secret) {
  using namespace trireme::comm;
  std::deque<Stranger> strangers;
  const auto visit = [&](int port) {
    const auto come = [&]() -> Stranger& { return strangers.emplace_back(port); };
    const auto challenge_of = [](Stranger& stranger) {
      const auto frame = stranger.hear();
      check(frame && frame->header.kind == FrameKind::challenge, "who comes is asked for a proof");
      return frame.value_or(Frame{}).data;
    };
    const auto hello = [](const std::string& known, std::span<const std::byte> challenge, int rank) {
      Challenges challenges{.of_rank = make_challenge()};
      std::copy(challenge.begin(), challenge.end(), challenges.of_hub.begin());
      std::vector<std::byte> said(challenges.of_rank.begin(), challenges.of_rank.end());
      const Sha256 proof = proof_of(known, Prover::rank, challenges, rank, 3);
      said.insert(said.end(), proof.begin(), proof.end());
      return write_frame({.kind = FrameKind::hello, .rank = rank, .size = 3}, said);
    };
    const auto is_refused = [](Stranger& stranger) {
      const auto frame = stranger.hear();
      return frame && frame->header.kind == FrameKind::failure && !stranger.hear();
    };
    const auto overheard = hello(secret, challenge_of(come()), 2);
    for (std::size_t count = 1; count < sizeof(FrameHeader); ++count) come().say(std::span(overheard).first(count));
    come().say(std::vector<std::byte>(100'000, std::byte{0xff}));
    for (const std::uint64_t bytes : {std::uint64_t{65}, std::uint64_t{1} << 36, ~std::uint64_t{0}}) {
      auto announcing = overheard;
      std::memcpy(announcing.data() + offsetof(FrameHeader, bytes), &bytes, sizeof(bytes));
      Stranger& stranger = come();
      challenge_of(stranger);
      stranger.say(announcing);
      check(!stranger.hear(), "who announces too much is sent away");
    }
    Stranger& replaying = come();
    challenge_of(replaying);
    replaying.say(overheard);
    check(is_refused(replaying), "what was overheard proves nothing");
    Stranger& guessing = come();
    guessing.say(hello(secret + "?", challenge_of(guessing), 2));
    check(is_refused(guessing), "who knows another secret is told");
    for (const int rank : {-1, 3, 1 << 30}) {
      Stranger& misplaced = come();
      misplaced.say(hello(secret, challenge_of(misplaced), rank));
      check(is_refused(misplaced), "who is no rank of this job is told");
    }
    Stranger& trickling = come();
    for (const std::byte one : overheard) {
      trickling.say({&one, 1});
      std::this_thread::sleep_for(1ms);
    }
  };
  const auto train = [](const Group& world) {
    for (int step = 0; step < 20; ++step) {
      std::vector<float> data(1000, 1.0f);
      world.all_reduce(std::span(data)).wait_on_host();
      if (data[999] != 3.0f) return 50;
    }
    return 0;
  };
  const auto codes = run(3, {.deadline = 20s}, train, -1, visit, 2);
  check(all_are(codes, 0), fmt::format("ranks meet and train beside strangers, the secret is \"{}\"", secret));
}

void check_port_closes() {
  const auto codes = run(2, {.deadline = 5s}, [port = next_port](const Group& world) {
    world.barrier("met");
    try {
      trireme::comm::connect_to("127.0.0.1", port, 200ms);
    } catch (const Error&) {
      world.barrier("after");
      return 0;
    }
    return 51;
  });
  check(all_are(codes, 0), "the port is closed once all have met");
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

// A host that answers nothing: a listener whose queue is full.
void check_connect_deadline() {
  const int port = free_port();
  const Socket listener = trireme::comm::listen_on(port);
  listen(listener.descriptor(), 0);
  std::vector<Socket> queue;
  const auto begin = Clock::now();
  try {
    for (int i = 0; i < 10; ++i) queue.push_back(trireme::comm::connect_to("127.0.0.1", port, 200ms));
    check(false, "the queue has an end");
  } catch (const Error& error) {
    check(error.code() == trireme::ErrorCode::timeout, "a host that does not answer is a timeout");
  }
  check(Clock::now() - begin < 20s, "connect ends at its deadline");
}

}  // namespace

int main() {
  setenv("TRIREME_RANKS_PER_NODE", "1", 1);  // the suite's word for ranks that share no memory
  check_connected_to_itself();
  check_connect_deadline();
  check_suite();
  check_missing_rank();
  check_killed_rank();
  check_stuck_rank();
  check_silent_stranger();
  check_many_silent_strangers();
  check_false_hub();
  check_late_hub();
  check_hostile_clients("");
  setenv("TRIREME_JOB_SECRET", "of the job", 1);
  check_hostile_clients("of the job");
  check_port_closes();
  return failures == 0 ? 0 : 1;
}
