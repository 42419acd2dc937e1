#pragma once

#include "comm/base/nodes.hpp"
#include "comm/mpi/mpi_calls.hpp"
#include "comm/wire/wire_schedule.hpp"

namespace trireme::comm {

// Times messages between neighbouring nodes. Returns the slowest link of the group, the same on all ranks. Collective.
LinkModel measure_link(MPI_Comm communicator, const Nodes& nodes);

}  // namespace trireme::comm
