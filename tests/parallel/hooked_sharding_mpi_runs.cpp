// Hooks in sharded steps on processes: mpirun -n N hooked_sharding_mpi_runs

#include <cstdio>

#include "hooked_sharding_runs.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    const auto problems = trireme::tests::hooked_sharding_problems(world);
    for (const auto& problem : problems) std::fprintf(stderr, "rank %d: %s\n", world.rank(), problem.c_str());
    auto count = static_cast<std::int64_t>(problems.size());
    world.all_reduce(std::span(&count, 1)).wait_on_host();
    return count == 0 ? 0 : 1;
  });
}
