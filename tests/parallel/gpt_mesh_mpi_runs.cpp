// A GPT on data, pipeline and tensor axes of processes, also where they count as several nodes: mpirun -n N gpt_mesh_mpi_runs

#include "gpt_mesh_runs.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  using trireme::tests::GptLayout;
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    const auto wanted = trireme::tests::train_gpt(world.split(world.rank(), 0, "alone"), {});
    for (const GptLayout& layout : {GptLayout{.pipeline = 2, .tensor = 2},
                                    GptLayout{.pipeline = 2, .tensor = 2, .sequence_parallel = true, .schedule = "zb"},
                                    GptLayout{.data = 2, .tensor = 2, .sharding = trireme::parallel::Sharding::automatic},
                                    GptLayout{.data = 2, .pipeline = 2, .schedule = "interleaved", .chunks = 2}}) {
      require_same_training(trireme::tests::train_gpt(world, layout), wanted);
    }
    return 0;
  });
}
