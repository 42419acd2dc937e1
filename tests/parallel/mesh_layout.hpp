#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"

namespace trireme::tests {

// How the ranks of a run divide a model and its batch.
struct Layout {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  bool sequence_parallel = false;
  int expert = 1;
  int micro_batches = 1;
  parallel::Sharding sharding = parallel::Sharding::none;

  int ranks() const { return data * pipeline * tensor * expert; }
  std::string str() const {
    return fmt::format("data {} x expert {} x pipeline {} x tensor {}{}, {} micro-batches, {}", data, expert, pipeline, tensor,
                       sequence_parallel ? ", sequence-parallel" : "", micro_batches,
                       sharding == parallel::Sharding::none ? "replicated" : "sharded");
  }
  ModelContext context(const ProcessMesh& mesh) const {
    return parallel::model_context(mesh, {.sequence_parallel = sequence_parallel});
  }
  ProcessMesh mesh(const Group& world) const {
    return ProcessMesh(world, {.data = data, .pipeline = pipeline, .tensor = tensor, .expert = expert});
  }
};

// Each axis, and each pair of axes.
inline const std::vector<Layout> layouts{{},
                                         {.micro_batches = 2},
                                         {.data = 2},
                                         {.pipeline = 2, .micro_batches = 2},
                                         {.tensor = 2},
                                         {.tensor = 2, .sequence_parallel = true},
                                         {.pipeline = 2, .tensor = 2, .sequence_parallel = true},
                                         {.data = 2, .tensor = 2, .sharding = parallel::Sharding::optimizer},
                                         {.data = 2, .pipeline = 2, .sharding = parallel::Sharding::optimizer}};

}  // namespace trireme::tests
