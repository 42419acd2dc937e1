#pragma once

#include <cstdint>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

struct ModelContextOptions {
  // Between split layers each rank of the tensor axis keeps its own rows only: less memory, a quarter more bytes between the
  // ranks. Layers that can't say so themselves refuse.
  bool sequence_parallel = false;
  int num_chunks = 1;  // stages of a rank of the pipeline axis: stage s lies on rank s % ranks
  // What each layer costs, in any unit, the same on all ranks: stages are cut so that the most expensive one costs as little as
  // can be. Empty: what the layers say, see nn::Staged.
  std::vector<double> layer_costs = {};
  std::uint64_t seed = 1;  // of first values, and of the random numbers of steps; the same on all ranks
  // Of all ranks together; for models that remember rows, see nn::Carried, and for batches that the ranks do not divide.
  std::int64_t batch_size = 0;
};

// Where a model lies on the mesh. Collective.
//
//   const ProcessMesh mesh(world, {.tensor = 2});
//   models::Gpt<Float32> model({.heads = 12, .width = 768}, parallel::model_context(mesh));
//   parallel::DataParallel data_parallel(model, mesh);
ModelContext model_context(const ProcessMesh& mesh, const ModelContextOptions& options = {});

}  // namespace parallel
}  // namespace trireme
