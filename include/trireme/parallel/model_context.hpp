#pragma once

#include <cstdint>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

struct ModelContextOptions {
  // Sequence parallelism: between split layers each rank of the tensor axis keeps only its own rows. This saves memory, but
  // sends a quarter more bytes between the ranks. Layers that do not support sequence parallelism throw.
  bool sequence_parallel = false;
  int num_chunks = 1;  // stages on each rank of the pipeline axis; stage s lies on rank s % ranks
  // The cost of each layer in any unit, the same on all ranks. Layers are divided into stages so that the most expensive stage
  // costs as little as possible. Empty: the layers' own costs, see nn::Staged.
  std::vector<double> layer_costs = {};
  // How many layers of each stage, counted from the stage's first layer, keep only their input. The backward pass computes
  // these layers again, see recompute(). all_layers: all layers but the model's last layer. The bits of losses and weights
  // stay the same.
  int recompute_layers = 0;
  std::uint64_t seed = 1;  // of initial values, and of the random numbers of steps; the same on all ranks
  // Samples of all ranks together. Needed for models that carry values of rows, see nn::Carried, and for batches that do not
  // divide equally among the ranks. If steps have different sizes: one that does not divide equally, or else 0, and
  // Step::set_samples() says how many each step has.
  std::int64_t batch_size = 0;
};

// The context for a model on the ranks of a mesh. Collective.
//
//   const ProcessMesh mesh(world, {.tensor = 2});
//   models::Gpt<Float32> model({.heads = 12, .width = 768}, parallel::model_context(mesh));
//   parallel::DataParallel data_parallel(model, mesh);
ModelContext model_context(const ProcessMesh& mesh, const ModelContextOptions& options = {});

}  // namespace parallel
}  // namespace trireme
