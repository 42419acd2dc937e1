#include "trireme/mesh/process_mesh.hpp"

namespace trireme {
namespace {

MeshOptions completed(const Group& world, MeshOptions options) {
  require(options.data >= 0 && options.pipeline > 0 && options.tensor > 0,
          "a mesh needs pipeline and tensor above 0 and data of 0 or more, got {}, {} and {}", options.pipeline, options.tensor,
          options.data);
  const int model_ranks = options.pipeline * options.tensor;
  require(options.data != 0 || world.size() % model_ranks == 0,
          "a mesh of pipeline {} x tensor {} needs a multiple of {} ranks, there are {}", options.pipeline, options.tensor,
          model_ranks, world.size());
  if (options.data == 0) options.data = world.size() / model_ranks;
  require(options.data * model_ranks == world.size(),
          "a mesh of data {} x pipeline {} x tensor {} does not fit {} ranks; their product must be the number of ranks",
          options.data, options.pipeline, options.tensor, world.size());
  return options;
}

struct Coordinates {
  int data;
  int pipeline;
  int tensor;
};

Coordinates coordinates(int rank, const MeshOptions& options) {
  return {rank / (options.pipeline * options.tensor), rank / options.tensor % options.pipeline, rank % options.tensor};
}

}  // namespace

ProcessMesh::ProcessMesh(const Group& world, const MeshOptions& options)
    : world_(world), data_(world), pipeline_(world), tensor_(world) {
  const MeshOptions mesh = completed(world, options);
  const auto [data, pipeline, tensor] = coordinates(world.rank(), mesh);
  data_ = world.split(pipeline * mesh.tensor + tensor, data, "data");
  pipeline_ = world.split(data * mesh.tensor + tensor, pipeline, "pipeline");
  tensor_ = world.split(data * mesh.pipeline + pipeline, tensor, "tensor");
}

}  // namespace trireme
