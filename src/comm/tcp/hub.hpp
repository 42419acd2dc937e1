#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/tcp/frame.hpp"

namespace trireme::comm {

// Where the ranks of a job without MPI meet: a thread of rank 0's process, to which each rank, that one too, has a connection.
// It compares and does their collectives, hands on their messages and failures, and says who has left. Meant for little data.
class Hub {
 public:
  Hub(Socket listener, int ranks, std::chrono::milliseconds deadline);

 private:
  using Clock = std::chrono::steady_clock;
  using CallId = std::pair<std::uint64_t, std::uint64_t>;  // group, number

  struct Collective {
    std::vector<std::optional<Frame>> calls;  // by group rank
    Clock::time_point begin;
    bool reminded = false;
  };

  struct Guest {  // who has not said which rank it is
    Socket socket;
    Clock::time_point came;
  };

  void serve(const std::stop_token& stop);
  void admit();
  void greet(Socket socket);
  void give_up_meeting();
  void take(int rank);
  void take_call(Frame frame);
  void finish(const CallId& id, const Collective& collective);
  void remind(const CallId& id, Collective& collective);
  void leave(int rank);
  void abandon(const CallId& id, const Collective& collective);
  void fail(const FrameHeader& header, const std::string& text);
  void send(int rank, const FrameHeader& header, std::span<const std::byte> data = {});
  void send_all(const FrameHeader& header, std::span<const std::byte> data = {});
  void send_callers(const Collective& collective, const CallId& id, FrameHeader header, std::span<const std::byte> data);
  std::vector<int> missing(const CallId& id, const Collective& collective) const;  // world ranks
  bool has_come(int rank) const { return static_cast<bool>(ranks_[static_cast<std::size_t>(rank)]); }

  Socket listener_;
  std::chrono::milliseconds deadline_;
  Clock::time_point begin_ = Clock::now();
  std::vector<Guest> guests_;
  std::vector<Socket> ranks_;
  std::set<int> left_;
  bool met_ = false;
  bool failed_ = false;
  std::map<std::uint64_t, std::vector<std::int32_t>> members_;  // world ranks by group
  std::map<CallId, Collective> collectives_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace trireme::comm
