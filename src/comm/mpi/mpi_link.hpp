#pragma once

#include "comm/base/nodes.hpp"
#include "comm/mpi/mpi_calls.hpp"
#include "comm/wire/wire_schedule.hpp"

namespace trireme::comm {

// Times messages between neighbouring nodes; the slowest link of the group, the same answer on all ranks. Collective.
LinkModel measure_link(MPI_Comm communicator, const Nodes& nodes);

}  // namespace trireme::comm
