#include "comm/launch/liveness.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "comm/launch/node_watch.hpp"

using namespace trireme;
using namespace trireme::comm;
using namespace std::chrono_literals;

namespace {

using State = LivenessProbe::State;
using Clock = std::chrono::steady_clock;

int port_of(const Socket& listener) {
  sockaddr_in6 name{};
  socklen_t size = sizeof(name);
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin6_port);
}

State state_at(int port, const std::string& secret = "of rank 1") {
  return LivenessProbe({.addresses = {"127.0.0.1"}, .port = port, .secret = secret}, 0).wait();
}

// Accepts every connection and calls a function of the test with it.
class Impostor {
 public:
  explicit Impostor(std::function<void(const Socket&)> act)
      : listener_(listen_on(0)), thread_([this, act = std::move(act)](const std::stop_token& stop) {
          std::vector<Socket> open;
          while (!stop.stop_requested()) {
            if (!wait_for_input(listener_, 10ms)) continue;
            open.push_back(listener_.accept());
            act(open.back());
          }
        }) {}
  int port() const { return port_of(listener_); }

 private:
  Socket listener_;
  std::jthread thread_;
};

std::vector<std::byte> hear(const Socket& socket, std::size_t wanted) {
  std::vector<std::byte> bytes(wanted);
  std::size_t heard = 0;
  while (heard < wanted && wait_for_bytes(socket, 2s)) heard += socket.receive_now(std::span(bytes).subspan(heard)).value_or(0);
  bytes.resize(heard);
  return bytes;
}

// Forwards connections to the port of a rank; it still accepts connections when that rank is gone.
class Proxy {
 public:
  explicit Proxy(int target)
      : target_(target), impostor_([this](const Socket& visitor) {
          if (!target_is_there) return;
          const Socket& behind = behind_.emplace_back(connect_to("127.0.0.1", target_, 1s));
          behind.send(hear(visitor, 68));
          visitor.send(hear(behind, 32));
          const std::lock_guard lock(mutex_);
          visitors_.push_back(visitor.descriptor());
        }) {}
  int port() const { return impostor_.port(); }
  void close_idle_connections() {
    const std::lock_guard lock(mutex_);
    for (const int visitor : visitors_) shutdown(visitor, SHUT_RDWR);
  }

  std::atomic<bool> target_is_there = true;

 private:
  int target_;
  std::vector<Socket> behind_;
  std::mutex mutex_;
  std::vector<int> visitors_;
  Impostor impostor_;
};

}  // namespace

TEST_CASE("a rank that lives answers, and its connection stays open as long as it lives") {
  std::optional<LivenessResponder> rank;
  rank.emplace("of rank 1");
  const Socket silent = connect_to("127.0.0.1", rank->port(), 1s);
  const auto begin = Clock::now();
  LivenessProbe probe({.addresses = {"127.0.0.1"}, .port = rank->port(), .secret = "of rank 1"}, 7);
  REQUIRE(probe.wait() == State::alive);
  CHECK(Clock::now() - begin < 1s);
  const Socket connection = probe.take();
  std::array<std::byte, 1> byte{};
  CHECK(connection.receive_now(byte) == 0);
  CHECK(rank->take(7));
  CHECK_FALSE(rank->take(7));
  CHECK_FALSE(rank->take(3));
  CHECK(state_at(rank->port(), "of another rank") == State::lost);
  const int port = rank->port();
  rank.reset();
  CHECK(wait_for_input(connection, 1s));
  CHECK_FALSE(connection.receive_now(byte));
  CHECK(state_at(port) == State::lost);
}

TEST_CASE("what opens a connection and is no rank is known within seconds") {
  const std::vector<std::function<void(const Socket&)>> impostors{
      [](const Socket&) {},                                                    // says nothing
      [](const Socket& socket) { shutdown(socket.descriptor(), SHUT_RDWR); },  // hangs up
      [](const Socket& socket) { socket.send(hear(socket, 68)); },             // an echo
      [](const Socket& socket) { socket.send(std::vector<std::byte>(1000)); }};
  for (const auto& act : impostors) {
    const Impostor impostor(act);
    const auto begin = Clock::now();
    CHECK(state_at(impostor.port()) == State::lost);
    CHECK(Clock::now() - begin < 4s);
  }
}

TEST_CASE("a rank is looked for at all of its addresses") {
  const LivenessResponder rank("of rank 1");
  LivenessProbe probe({.addresses = {"no.such.host.invalid", "127.0.0.1"}, .port = rank.port(), .secret = "of rank 1"}, 0);
  CHECK(probe.wait() == State::alive);
}

TEST_CASE("nodes that a proxy joins: a closed connection is no lost rank, and a silent proxy is one") {
  std::vector<std::string> texts(2);
  std::barrier all_said(2);
  std::unique_ptr<Proxy> proxy;
  const auto exchange_of = [&](std::size_t rank) -> Exchange {
    return [&, rank](std::string_view text) {
      texts[rank] = text;
      all_said.arrive_and_wait();
      if (rank == 0 && proxy == nullptr) {  // stands where rank 1 says that it listens
        const std::size_t port = texts[1].find(' ', texts[1].find(' ') + 1) + 1;
        const std::size_t end = std::min(texts[1].find(' ', port), texts[1].size());
        proxy = std::make_unique<Proxy>(std::stoi(texts[1].substr(port, end - port)));
        texts[1].replace(port, end - port, std::to_string(proxy->port()));
      }
      all_said.arrive_and_wait();
      std::vector<std::string> all = texts;
      all_said.arrive_and_wait();
      return all;
    };
  };
  const auto context_of = [](int rank) {
    return std::make_shared<RankContext>(RankContext::Place{.rank = rank, .deadline = 10s}, make_node_control(1));
  };
  const auto first = context_of(0);
  const auto second = context_of(1);
  std::optional<NodeWatch> of_second;
  std::thread other([&] { of_second.emplace(second, exchange_of(1), true); });
  const auto begin = Clock::now();
  NodeWatch of_first(first, exchange_of(0), true);
  other.join();
  CHECK(Clock::now() - begin < 2s);

  const auto watch_for = [&](std::chrono::milliseconds longest) {
    const auto end = Clock::now() + longest;
    while (Clock::now() < end && !first->node().failed()) {
      of_first.advance();
      std::this_thread::sleep_for(10ms);
    }
    return first->node().failed();
  };
  proxy->close_idle_connections();
  CHECK_FALSE(watch_for(3s));
  proxy->target_is_there = false;
  of_second.reset();
  proxy->close_idle_connections();
  CHECK(watch_for(8s));
  CHECK_THROWS_WITH(first->check_failure(), ContainsSubstring("rank 1"));
}
