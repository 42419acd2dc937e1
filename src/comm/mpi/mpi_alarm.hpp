#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <set>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/wire/mpi_calls.hpp"
#include "comm/wire/wire.hpp"

namespace trireme::comm {

// Tells the ranks of other nodes what those of one node read in their NodeControl: failures, whose main has returned, and who
// has left.
class MpiAlarm final : public Progress {
 public:
  MpiAlarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, const std::vector<int>& neighbours);
  ~MpiAlarm() override;
  MpiAlarm(const MpiAlarm&) = delete;
  MpiAlarm& operator=(const MpiAlarm&) = delete;

  void advance() override;
  bool needs_polling() const override { return !others_.empty(); }

  void tell_return();
  bool returned(int world_rank) const { return returned_.contains(world_rank); }
  void leave();
  bool left(int world_rank) const { return left_.contains(world_rank); }
  bool all_left() const { return left_.size() == others_.size(); }

 private:
  struct Notice;
  struct Sent;
  void relay_failure();
  void say_farewell(const Notice& notice);
  void send(const Notice& notice);
  void take(const Notice& notice);

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Wire> wire_;
  std::vector<int> others_;  // world ranks of other nodes
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::chrono::steady_clock::time_point next_look_{};
  std::set<int> returned_;
  std::set<int> left_;
  std::list<Sent> sent_;
};

}  // namespace trireme::comm
