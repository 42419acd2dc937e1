#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "comm/mpi/mpi_calls.hpp"
#include "comm/network/alarm.hpp"

namespace trireme::comm {

// Sends notices by MPI, on a communicator of their own, so that a rank needs only one probe for those of all others.
class MpiAlarm final : public Alarm {
 public:
  // `neighbours`: the world ranks of this node. Collective over the world.
  MpiAlarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, const std::vector<int>& neighbours);
  ~MpiAlarm() override;
  MpiAlarm(const MpiAlarm&) = delete;
  MpiAlarm& operator=(const MpiAlarm&) = delete;

 private:
  struct Sent {
    Notice notice;
    std::vector<MPI_Request> requests;
  };
  void send(const Notice& notice) override;
  std::optional<Notice> next() override;

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::list<Sent> sent_;
};

}  // namespace trireme::comm
