#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/mpi/mpi_alarm.hpp"
#include "comm/mpi/mpi_calls.hpp"
#include "comm/wire/wire.hpp"

namespace trireme::comm {

// A rank of the world, as those of its node know it too.
struct Correspondent {
  int rank = 0;
  int node_rank = -1;  // -1: of another node
};

// A rank's messages that MPI has not finished, whatever became of their groups.
class MpiOutbox final : public Progress {
 public:
  MpiOutbox(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, std::shared_ptr<MpiAlarm> alarm);
  ~MpiOutbox() override;
  MpiOutbox(const MpiOutbox&) = delete;
  MpiOutbox& operator=(const MpiOutbox&) = delete;

  // Both are called by who has the wire's turn, and keep the envelope until MPI is done with it.
  void add_send(std::vector<std::byte> envelope, MPI_Request request, Correspondent receiver);
  void add_abandoned_receive(std::vector<std::byte> envelope, MPI_Request request);

  // Main has returned: waits until all that this rank has sent is delivered, but for what is sent to ranks whose main has
  // returned too, who receive nothing more. A missed deadline is the failure of the job, and recorded.
  void drain();

  void advance() override;
  bool needs_polling() const override { return !sends_.empty(); }

 private:
  class Delivery;
  struct Unfinished {
    std::vector<std::byte> envelope;
    MPI_Request request = MPI_REQUEST_NULL;
    Correspondent receiver = {};
  };
  bool receives_nothing_more(const Correspondent& receiver) const;
  static void remove_finished(std::list<Unfinished>& messages);

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Wire> wire_;
  std::shared_ptr<MpiAlarm> alarm_;
  std::list<Unfinished> sends_;
  std::list<Unfinished> abandoned_;  // receives that had begun when their user gave them up: MPI can't cancel these
};

}  // namespace trireme::comm
