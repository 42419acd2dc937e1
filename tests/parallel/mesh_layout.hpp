#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/data/text/token_batch.hpp"
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

// Rows [first, first + count) of windows [rows, time + 1]: their tokens, and the token after each.
inline data::TokenBatch batch_of_windows(const Tensor<std::int32_t>& windows, std::int64_t first, std::int64_t count) {
  const std::int64_t time = windows.dim(1) - 1;
  data::TokenBatch batch{
      .tokens = Tensor<std::int32_t>({count, time}), .targets = Tensor<std::int32_t>({count, time}), .first_sample = first};
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int32_t* const window = windows.data() + (first + row) * (time + 1);
    std::copy_n(window, time, batch.tokens.data() + row * time);
    std::copy_n(window + 1, time, batch.targets.data() + row * time);
  }
  return batch;
}

}  // namespace trireme::tests
