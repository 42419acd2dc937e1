// Pipelines on processes: mpirun -n N pipeline_mpi_runs

#include "pipeline_runs.hpp"
#include "trireme/comm/launch/launch.hpp"

int main() {
  using trireme::tests::PipelineSetup;
  return trireme::launch(trireme::BackendKind::mpi, {}, [](const trireme::Group& world) {
    for (const PipelineSetup& setup : {PipelineSetup{"gpipe", 1, 2}, PipelineSetup{"1f1b", 1, 2}, PipelineSetup{"zb", 1, 2},
                                       PipelineSetup{"interleaved", 1, 2, 2}, PipelineSetup{"zb", 1, 4},
                                       PipelineSetup{"interleaved", 1, 4, 2}, PipelineSetup{"1f1b", 2, 2}}) {
      if (setup.data * setup.pipeline <= world.size()) check_pipeline(world, setup);
    }
    return 0;
  });
}
