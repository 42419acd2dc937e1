#pragma once

#include "comm/mpi_calls.hpp"
#include "comm/nodes.hpp"
#include "comm/wire_plan.hpp"

namespace trireme::comm {

// Times messages between neighbouring nodes; the slowest link of the group, the same answer on all ranks. Collective.
LinkModel measure_link(MPI_Comm communicator, const Nodes& nodes);

}  // namespace trireme::comm
