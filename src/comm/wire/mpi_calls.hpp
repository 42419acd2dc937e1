#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

void check_mpi(int result, std::string_view call);  // throws what MPI says about a failed call

std::vector<std::string> gather_texts(MPI_Comm communicator, std::string_view text);  // blocking, at start-up only

int rank_in(MPI_Comm communicator);
int size_of(MPI_Comm communicator);

}  // namespace trireme::comm
