#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/tcp/frame_rules.hpp"
#include "comm/tcp/sha256.hpp"

namespace trireme::comm {

// The meeting point of the ranks of a job without MPI: a thread in rank 0's process, to which every rank, also rank 0, has a
// connection. It compares and performs their collectives, forwards their messages and failures, and reports ranks that leave.
// Meant for small data. It rejects connections that do not know the job's secret, closes the port once all ranks have
// connected, and never blocks on a socket.
class Hub {
 public:
  Hub(Socket listener, int ranks, std::string secret, std::chrono::milliseconds deadline);

 private:
  using Clock = std::chrono::steady_clock;
  using CallId = std::pair<std::uint64_t, std::uint64_t>;  // group, number

  struct Collective {
    std::vector<std::optional<Frame>> calls;  // by group rank
    Clock::time_point begin;
    bool reminded = false;
  };

  struct Guest {  // a connection that has not proved yet which rank it is
    FrameConnection connection;
    Sha256 challenge;
    Clock::time_point came;
  };

  void serve(const std::stop_token& stop);
  void look();
  void send_rest();
  void admit();
  void make_room();
  void greet(Guest& guest);
  void take_hello(Guest& guest, const Frame& hello);
  void give_up_meeting();
  void hear(int rank);
  void take(int rank, Frame frame);
  void take_call(Frame frame);
  void finish(const CallId& id, const Collective& collective);
  void remind(const CallId& id, Collective& collective);
  void leave(int rank);
  void abandon(const CallId& id, const Collective& collective);
  void fail(const FrameHeader& header, const std::string& text);
  void dismiss(int rank, std::string_view what);
  void send(int rank, const FrameHeader& header, std::span<const std::byte> data = {});
  void send_all(const FrameHeader& header, std::span<const std::byte> data = {});
  void send_callers(const Collective& collective, const CallId& id, FrameHeader header, std::span<const std::byte> data);
  std::vector<int> missing(const CallId& id, const Collective& collective) const;  // world ranks
  bool has_come(int rank) const { return static_cast<bool>(ranks_[static_cast<std::size_t>(rank)]); }

  Socket listener_;  // closed once all ranks have connected
  std::string secret_;
  std::chrono::milliseconds deadline_;
  Clock::time_point begin_ = Clock::now();
  std::vector<Guest> guests_;
  std::vector<FrameConnection> ranks_;
  std::vector<Sha256> proofs_;  // the hub's proof for each rank that has connected
  std::set<int> left_;
  bool met_ = false;
  bool failed_ = false;
  MembersOfGroups members_;
  std::map<CallId, Collective> collectives_;
  std::jthread thread_;  // declared last, since it uses all members above
};

}  // namespace trireme::comm
