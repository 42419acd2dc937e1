#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::comm {

Error mpi_error(int result, std::string_view call);  // MPI's text for a failed call
void check_mpi(int result, std::string_view call);   // throws mpi_error() if the call failed

std::vector<std::string> gather_texts(MPI_Comm communicator, std::string_view text);  // blocks; for start-up only

int rank_in(MPI_Comm communicator);
int size_of(MPI_Comm communicator);

}  // namespace trireme::comm
