#include "trireme/mesh/process_mesh.hpp"

namespace trireme {
namespace {

MeshOptions completed(const Group& world, MeshOptions options) {
  require(options.data >= 0 && options.pipeline > 0 && options.tensor > 0 && options.expert > 0,
          "a mesh needs pipeline, tensor and expert above 0 and data of 0 or more, got {}, {}, {} and {}", options.pipeline,
          options.tensor, options.expert, options.data);
  require(options.expert == 1 || (options.pipeline == 1 && options.tensor == 1),
          "an expert axis of {} ranks is not combined with a pipeline of {} and a tensor axis of {} yet: leave these out",
          options.expert, options.pipeline, options.tensor);
  require(options.data != 0 || world.size() % options.expert == 0,
          "a mesh with an expert axis of {} needs a multiple of {} ranks, there are {}", options.expert, options.expert,
          world.size());
  const int model_ranks = options.pipeline * options.tensor * options.expert;
  require(options.data != 0 || world.size() % model_ranks == 0,
          "a mesh of pipeline {} x tensor {} needs a multiple of {} ranks, there are {}", options.pipeline, options.tensor,
          model_ranks, world.size());
  if (options.data == 0) options.data = world.size() / model_ranks;
  require(options.expert == 1 || options.data * model_ranks == world.size(),
          "a mesh of data {} x expert {} does not fit {} ranks; their product must be the number of ranks", options.data,
          options.expert, world.size());
  require(options.data * model_ranks == world.size(),
          "a mesh of data {} x pipeline {} x tensor {} does not fit {} ranks; their product must be the number of ranks",
          options.data, options.pipeline, options.tensor, world.size());
  return options;
}

struct Coordinates {
  int batch;
  int pipeline;
  int tensor;
};

Coordinates coordinates(int rank, const MeshOptions& options) {
  return {rank / (options.pipeline * options.tensor), rank / options.tensor % options.pipeline, rank % options.tensor};
}

}  // namespace

ProcessMesh::ProcessMesh(const Group& world, const MeshOptions& options)
    : world_(world), data_(world), pipeline_(world), tensor_(world), expert_(world), batch_(world) {
  const MeshOptions mesh = completed(world, options);
  const auto [batch, pipeline, tensor] = coordinates(world.rank(), mesh);
  const int data = batch / mesh.expert;
  if (mesh.expert > 1) {
    data_ = world.split(batch % mesh.expert, data, "data");
    pipeline_ = tensor_ = world.split(world.rank(), 0, "alone");
    expert_ = world.split(data, batch % mesh.expert, "expert");
    return;
  }
  data_ = batch_ = world.split(pipeline * mesh.tensor + tensor, data, "data");
  expert_ = world.split(world.rank(), 0, "expert");
  pipeline_ = world.split(data * mesh.tensor + tensor, pipeline, "pipeline");
  tensor_ = world.split(data * mesh.pipeline + pipeline, tensor, "tensor");
}

}  // namespace trireme
