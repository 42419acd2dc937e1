#include "trireme/parallel/model_part.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "trireme/parallel/settings.hpp"

namespace trireme::parallel {
nn::ModelPart model_part(const ProcessMesh& mesh, const ModelPartOptions& options) {
  const Group& pipeline = mesh.pipeline();
  require(options.num_chunks > 0, "a rank of a pipeline has at least one stage, got {}", options.num_chunks);
  require_same(mesh.world(), "setting of the model part",
               {{"sequence_parallel", options.sequence_parallel ? "on" : "off"},
                {"num_chunks", std::to_string(options.num_chunks)},
                {"layer_costs", fmt::format("{}", fmt::join(options.layer_costs, ","))}});
  nn::ModelPart part{.sequence_parallel = options.sequence_parallel,
                     .num_stages = pipeline.size() * options.num_chunks,
                     .stages = {},
                     .layer_costs = options.layer_costs};
  for (int chunk = 0; chunk < options.num_chunks; ++chunk) part.stages.push_back(chunk * pipeline.size() + pipeline.rank());
  // Groups of their own: nothing else must come between the collectives of a model.
  const auto axis = [](const Group& ranks, int color, std::string_view name) {
    return std::make_shared<const Group>(ranks.split(color, ranks.rank(), name));
  };
  if (pipeline.size() > 1) {
    const bool end = pipeline.rank() == 0 || pipeline.rank() == pipeline.size() - 1;
    const Axis ends = axis(pipeline, end ? 0 : 1, "first and last stage");
    part.pipeline = axis(pipeline, 0, "stages of a model");
    if (end) part.ends = ends;
  }
  if (mesh.tensor().size() > 1) part.tensor = axis(mesh.tensor(), 0, "split layers");
  return part;
}

}  // namespace trireme::parallel
