#pragma once

#include <memory>
#include <vector>

#include "comm/mpi/mpi_alarm.hpp"
#include "comm/mpi/mpi_calls.hpp"
#include "comm/mpi/mpi_outbox.hpp"
#include "comm/shared/platform.hpp"

namespace trireme::comm {

// The objects that the mail of all groups of a rank shares.
struct MpiMailParts {
  std::shared_ptr<RankContext> context;
  std::shared_ptr<Wire> wire;
  std::shared_ptr<MpiAlarm> alarm;
  std::shared_ptr<MpiOutbox> outbox;
};

// Messages through MPI. `communicator`: has the group's ranks and is used for nothing else. `node_ranks`: of the members; -1
// for those of other nodes.
std::unique_ptr<Mail> make_mpi_mail(MPI_Comm communicator, MpiMailParts parts, const Members& members,
                                    std::vector<int> node_ranks);

}  // namespace trireme::comm
