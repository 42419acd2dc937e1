// Silent corruption on processes: mpirun -n N silent_corruption_mpi_runs

#include "silent_corruption_runs.hpp"
#include "trireme/comm/launch.hpp"

int main() {
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    trireme::tests::expect_differing_replicas_found(world);
    trireme::tests::expect_steps_that_are_not_finite_left_out(world);
    return 0;
  });
}
