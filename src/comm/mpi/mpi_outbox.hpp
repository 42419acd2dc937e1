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

// A rank of the world, and its number within this node.
struct Correspondent {
  int rank = 0;
  int node_rank = -1;  // -1: on another node
};

// A rank's messages that MPI has not finished; they may outlive their groups.
class MpiOutbox final : public Progress {
 public:
  MpiOutbox(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, std::shared_ptr<MpiAlarm> alarm);
  ~MpiOutbox() override;
  MpiOutbox(const MpiOutbox&) = delete;
  MpiOutbox& operator=(const MpiOutbox&) = delete;

  // Both keep the envelope until MPI is done with it. The caller must have the wire's turn.
  void add_send(std::vector<std::byte> envelope, MPI_Request request, Correspondent receiver);
  void add_abandoned_receive(std::vector<std::byte> envelope, MPI_Request request);

  // Call it when main has returned: waits until all messages of this rank are delivered, except those to ranks whose main has
  // returned too, which receive no more. Records a missed deadline as the job's failure.
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
  std::list<Unfinished> abandoned_;  // receives that were given up but that MPI can't cancel, since data arrive already
};

}  // namespace trireme::comm
