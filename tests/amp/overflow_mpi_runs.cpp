// A float16 overflow on one process: mpirun -n N overflow_mpi_runs

#include "amp/overflow_run.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    trireme::tests::expect_all_skip_the_overflow(world);
    return 0;
  });
}
