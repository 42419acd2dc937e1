// Silent corruption on processes: mpirun -n N silent_corruption_mpi_runs

#include "silent_corruption_runs.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    using namespace trireme::tests;
    for (const auto& fault : turned_bits(world.size(), Culprits::one)) fault.expect_found(world);
    for (const auto& fault : steps_that_are_not_finite(world.size(), Culprits::one)) fault.expect_found(world);
    return 0;
  });
}
