// The sharded step on processes: mpirun -n N sharded_step_runs

#include <cstdio>

#include "sharded_runs.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    const auto problems = trireme::tests::sharded_step_problems_in_pairs(world);
    for (const auto& problem : problems) std::fprintf(stderr, "rank %d: %s\n", world.rank(), problem.c_str());
    auto count = static_cast<std::int64_t>(problems.size());
    world.all_reduce(std::span(&count, 1)).wait_on_host();
    return count == 0 ? 0 : 1;
  });
}
