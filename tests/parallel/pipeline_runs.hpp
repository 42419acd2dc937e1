#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/nn/layers.hpp"
#include "trireme/parallel/pipeline.hpp"

// A small model in stages, on any backend, against the same model on one rank.
namespace trireme::tests {

struct PipelineSetup {
  std::string schedule = "1f1b";
  int data = 1;
  int pipeline = 1;
  int chunks = 1;
  int micro_batches = 4;  // of a rank of the data axis
  parallel::Sharding sharding = parallel::Sharding::automatic;
  bool fixed_bits = false;

  parallel::PipelineSchedule make_schedule() const;
  std::string str() const;
};

inline constexpr std::int64_t pipeline_width = 12;

// Layers of the model; those of all stages together are the whole one.
struct PipelinePart : nn::Module<Float32> {
  std::vector<std::unique_ptr<nn::Linear<Float32>>> linears;
  std::vector<std::unique_ptr<nn::LayerNorm<Float32>>> norms;

  explicit PipelinePart(const std::vector<int>& layers);
  PipelinePart(const parallel::PipelineSchedule& schedule, int rank);  // those of a rank, stage by stage

  Variable<float> forward(Variable<float> x, std::size_t begin, std::size_t end) const;
};

// The stages of a rank, of micro-batches of `rows` samples, the first of which is number *first.
std::vector<parallel::PipelineStage<float>> stages_of(const PipelinePart& part, const parallel::PipelineSchedule& schedule,
                                                      int rank, std::int64_t rows, const std::int64_t* first);

// Trains three steps in stages on the world's first data x pipeline ranks, and on each rank alone. Throws where losses, norms
// or this rank's values differ by more than rounding, or where losses and gradients of the first step are not the same bits
// although one rank of the data axis, or fixed bits, add them in the same order.
void check_pipeline(const Group& world, const PipelineSetup& setup);

}  // namespace trireme::tests
