#include "trireme/parallel/model_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "trireme/comm/base/require_same.hpp"

namespace trireme::parallel {

ModelContext model_context(const ProcessMesh& mesh, const ModelContextOptions& options) {
  const Group& pipeline = mesh.pipeline();
  require(options.num_chunks > 0, "a rank of a pipeline has at least one stage, got {}", options.num_chunks);
  require_same(mesh.world(), "model setting",
               {{"sequence_parallel", options.sequence_parallel},
                {"num_chunks", options.num_chunks},
                {"layer_costs", fmt::format("{}", fmt::join(options.layer_costs, ","))},
                {"recompute_layers", options.recompute_layers},
                {"seed", options.seed},
                {"batch_size", options.batch_size}});
  require(options.batch_size >= 0, "the size of a batch is above 0, or 0 if no layer carries values of rows, not {}",
          options.batch_size);
  require(options.batch_size == 0 || options.batch_size >= mesh.batch().size(),
          "a batch of {} samples has none for some of {} ranks; use at least {}", options.batch_size, mesh.batch().size(),
          mesh.batch().size());
  require(options.recompute_layers >= 0, "recompute_layers is the number of layers of a stage that are computed again, not {}",
          options.recompute_layers);
  ModelContext context{.sequence_parallel = options.sequence_parallel,
                       .chunks = options.num_chunks,
                       .layer_costs = options.layer_costs,
                       .recompute_layers = options.recompute_layers,
                       .seed = options.seed,
                       .rows = {.batch_size = options.batch_size,
                                .own = share_of(options.batch_size, mesh.batch().rank(), mesh.batch().size()),
                                .ranks = mesh.batch().size()}};
  // A model needs its own groups, so that no other collectives come between its own.
  const auto axis = [](const Group& ranks, int color, std::string_view name) {
    return std::make_shared<const Group>(ranks.split(color, ranks.rank(), name));
  };
  if (pipeline.size() > 1) {
    context.pipeline = axis(pipeline, 0, "stages of a model");
  }
  if (mesh.tensor().size() > 1) context.tensor = axis(mesh.tensor(), 0, "split layers");
  if (mesh.expert().size() > 1) context.expert = axis(mesh.expert(), 0, "experts");
  return context;
}

}  // namespace trireme::parallel
