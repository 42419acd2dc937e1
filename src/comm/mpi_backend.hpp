#pragma once

#include <memory>

#include "comm/mpi_alarm.hpp"
#include "comm/mpi_calls.hpp"
#include "comm/platform.hpp"

namespace trireme::comm {

// The collectives of ranks that share no memory, such as those of several nodes, through MPI's nonblocking collectives.
// Point-to-point messages share `calls` with the comparison of calls: MPI keeps the two apart.
std::shared_ptr<Backend> make_mpi_backend(std::shared_ptr<RankContext> context, std::shared_ptr<Platform> platform,
                                          std::shared_ptr<MpiAlarm> alarm, const Members& members, MPI_Comm calls,
                                          MPI_Comm data, std::unique_ptr<Mail> mail);

}  // namespace trireme::comm
