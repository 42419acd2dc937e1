#include "trireme/mesh/process_mesh.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace trireme {
namespace {

MeshOptions completed(const Group& world, MeshOptions options) {
  require(options.data >= 0 && options.pipeline > 0 && options.tensor > 0 && options.expert > 0,
          "a mesh needs pipeline, tensor and expert above 0 and data of 0 or more, got {}, {}, {} and {}", options.pipeline,
          options.tensor, options.expert, options.data);
  require(options.expert == 1 || options.tensor == 1,
          "an expert axis of {} ranks is not combined with a tensor axis of {} yet: leave one of them out", options.expert,
          options.tensor);
  const std::string axes = options.expert == 1 ? fmt::format("pipeline {} x tensor {}", options.pipeline, options.tensor)
                                               : fmt::format("expert {} x pipeline {}", options.expert, options.pipeline);
  // At most two of the three are above 1, so the product does not overflow.
  const std::int64_t model_ranks = std::int64_t{options.pipeline} * options.tensor * options.expert;
  require(options.data != 0 || world.size() % model_ranks == 0, "a mesh of {} needs a multiple of {} ranks, there are {}", axes,
          model_ranks, world.size());
  if (options.data == 0) options.data = static_cast<int>(world.size() / model_ranks);
  require(model_ranks <= world.size() && options.data * model_ranks == world.size(),
          "a mesh of data {} x {} does not fit {} ranks; their product must be the number of ranks", options.data, axes,
          world.size());
  return options;
}

struct Coordinates {
  int data;
  int expert;
  int pipeline;
  int tensor;
};

Coordinates coordinates(int rank, const MeshOptions& options) {
  const int batch = rank / (options.pipeline * options.tensor);
  return {.data = batch / options.expert,
          .expert = batch % options.expert,
          .pipeline = rank / options.tensor % options.pipeline,
          .tensor = rank % options.tensor};
}

}  // namespace

ProcessMesh::ProcessMesh(const Group& world, const MeshOptions& options)
    : world_(world), data_(world), pipeline_(world), tensor_(world), expert_(world), batch_(world) {
  const MeshOptions mesh = completed(world, options);
  const auto [data, expert, pipeline, tensor] = coordinates(world.rank(), mesh);
  const int batch = data * mesh.expert + expert;
  const int place = pipeline * mesh.tensor + tensor;  // within a replica
  const int num_places = mesh.pipeline * mesh.tensor;
  data_ = world.split(expert * num_places + place, data, "data");
  expert_ = world.split(data * num_places + place, expert, "expert");
  batch_ = mesh.expert == 1 ? data_ : world.split(place, batch, "batch");
  pipeline_ = world.split(batch * mesh.tensor + tensor, pipeline, "pipeline");
  tensor_ = world.split(batch * mesh.pipeline + pipeline, tensor, "tensor");
}

}  // namespace trireme
