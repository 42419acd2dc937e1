#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "comm/base/rank_context.hpp"
#include "comm/shared/mailboxes.hpp"
#include "comm/tcp/frame.hpp"

namespace trireme::comm {

// The address of the hub, and the rank that connects to it.
struct HubPlace {
  std::string address;
  int port = 0;
  int rank = 0;
  int size = 1;
  std::string secret = {};  // of the job
};

// A rank's connection to the hub. A thread receives the frames: it stores results and messages for the rank, and notes failures
// and ranks that leave in this process's own NodeControl.
class HubLink {
 public:
  HubLink(const HubPlace& place, std::chrono::milliseconds deadline);  // returns when all ranks have connected
  ~HubLink();

  const std::shared_ptr<NodeControl>& node() const { return node_; }
  void send(const FrameHeader& header, std::span<const std::byte> data = {});

  using CallId = std::pair<std::uint64_t, std::uint64_t>;  // group, number
  std::optional<Frame> take(const CallId& id);             // the hub's answer
  std::optional<std::string> missing(const CallId& id);    // the ranks that have not made the call, known after a long wait
  std::shared_ptr<Mailboxes> boxes(std::uint64_t group);

  // Waits until the other ranks have left too, after a failure only for a short time. Returns this process's exit code.
  int finish(RankContext& context, int code);

 private:
  void meet(std::chrono::milliseconds deadline);
  std::optional<Frame> first_frame(std::chrono::milliseconds deadline);
  std::optional<Frame> await_frame(std::chrono::steady_clock::time_point end);
  void serve(const std::stop_token& stop);
  bool look();  // false: the hub is gone
  void take(Frame frame);
  void relay_failure();
  void end_stuck_process();

  HubPlace place_;
  FrameConnection connection_;       // `thread_` receives from it once all ranks have connected
  std::chrono::milliseconds grace_;  // for the rank to return after a failure
  std::shared_ptr<NodeControl> node_;
  std::mutex sending_;  // held by send(), which may wait for room in the socket, up to the deadline
  std::mutex mutex_;    // guards what has arrived
  std::map<CallId, Frame> answers_;
  std::map<CallId, std::string> missing_;
  std::map<std::uint64_t, std::shared_ptr<Mailboxes>> boxes_;
  std::optional<std::chrono::steady_clock::time_point> failed_since_;
  std::jthread thread_;  // declared last, since it uses all members above
};

}  // namespace trireme::comm
