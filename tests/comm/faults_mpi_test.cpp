#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>

#include "comm/expect.hpp"
#include "comm/faults.hpp"
#include "trireme/comm/launch/launch.hpp"

using namespace trireme;

// All faults of all ranks in one job: this program owns MPI, so launch may be called again and again.
int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int failures = 0;
  for (const auto& fault : test::faults()) {
    for (int culprit = 0; culprit < ranks; ++culprit) {
      const int code = launch(BackendKind::mpi, {.deadline = test::fault_deadline}, [&](const Group& world) {
        fault.run(world, culprit);
        return 0;
      });
      const int failed_checks = test::failed_checks.exchange(0);
      if (code == fault.exit_code && failed_checks == 0) continue;
      ++failures;
      std::fprintf(stderr, "FAILED: %s of rank %d of %d: %d checks, exit code %d instead of %d\n", fault.name, culprit, ranks,
                   failed_checks, code, fault.exit_code);
    }
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
