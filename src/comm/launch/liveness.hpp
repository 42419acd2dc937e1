#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "comm/tcp/sha256.hpp"
#include "comm/tcp/socket.hpp"

// A rank shows that it is alive by proving, to ranks that connect, that it knows its secret, which all ranks of the job know.
// An open connection alone shows nothing, since proxies accept connections that they can't deliver.
namespace trireme::comm {

// Answers from its own thread, so that a rank that computes counts as alive too.
class LivenessResponder {
 public:
  explicit LivenessResponder(std::string secret);  // throws Error{io} if it can't listen
  ~LivenessResponder();
  LivenessResponder(const LivenessResponder&) = delete;
  LivenessResponder& operator=(const LivenessResponder&) = delete;

  int port() const { return port_; }
  Socket take(int rank);  // the newest connection of this rank that was answered; empty if there is none

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {  // a connection that has not proved yet to be a rank's
    Socket socket;
    std::vector<std::byte> said = {};
    Clock::time_point came = Clock::now();
  };

  void serve(const std::stop_token& stop);
  void look(const std::stop_token& stop);
  void admit();
  void hear(Guest& guest);

  std::string secret_;
  Socket listener_;
  int port_;
  std::vector<Guest> guests_;
  std::mutex mutex_;
  std::map<int, Socket> ranks_;  // guarded by mutex_
  std::jthread thread_;          // declared last, since it uses all members above
};

// Tries some addresses, one after the other, until the wanted rank answers at one.
class LivenessProbe {
 public:
  struct Target {
    std::vector<std::string> addresses;
    int port = 0;
    std::string secret;
  };
  enum class State : std::uint8_t { under_way, alive, lost };

  LivenessProbe(Target target, int own_rank);

  State look();   // may wait for a connection, but not for an answer
  State wait();   // waits until the state is alive or lost
  Socket take();  // the connection to a rank that is alive; it closes when the rank ends
  const Socket& socket() const { return socket_; }

 private:
  bool ask();  // connects to the next address; false if there is none left

  Target target_;
  int own_rank_;
  Socket socket_;
  Sha256 wanted_{};
  std::vector<std::byte> answer_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace trireme::comm
