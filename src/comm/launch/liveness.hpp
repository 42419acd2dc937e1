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

// How a rank shows that it lives: it answers whoever comes with a proof that it knows its secret, which all ranks of the job
// know. A connection that opens shows nothing: proxies accept what they can't deliver.
namespace trireme::comm {

// Answers, from a thread of its own: a rank that computes lives too.
class LivenessResponder {
 public:
  explicit LivenessResponder(std::string secret);  // throws Error{io} where it can't listen
  ~LivenessResponder();
  LivenessResponder(const LivenessResponder&) = delete;
  LivenessResponder& operator=(const LivenessResponder&) = delete;

  int port() const { return port_; }
  Socket take(int rank);  // on which this rank has come last, and was answered; empty: it has not. Others stay open here

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {  // who has not proved that it is a rank
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
  std::jthread thread_;          // last: it uses all of the above
};

// Asks what listens at some addresses, one after the other, until one answers as the rank does.
class LivenessProbe {
 public:
  struct Target {
    std::vector<std::string> addresses;
    int port = 0;
    std::string secret;
  };
  enum class State : std::uint8_t { under_way, alive, lost };

  LivenessProbe(Target target, int own_rank);

  State look();   // waits for a connection at most
  State wait();   // until it is alive or lost
  Socket take();  // once it is alive: the connection, which ends with the rank
  const Socket& socket() const { return socket_; }

 private:
  bool ask();  // at the next address; false: there is none

  Target target_;
  int own_rank_;
  Socket socket_;
  Sha256 wanted_{};
  std::vector<std::byte> answer_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace trireme::comm
