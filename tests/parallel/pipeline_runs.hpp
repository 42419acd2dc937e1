#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/parallel/data_parallel.hpp"

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

  std::string str() const;
};

inline constexpr std::int64_t pipeline_width = 12;

struct PipelineBatch {
  Tensor<float> x;
  Tensor<std::int32_t> targets;
  std::int64_t first_sample = 0;
};

// Micro-batches of `rows` samples each, from sample `first` on.
std::vector<PipelineBatch> pipeline_batches(std::int64_t first, int count, std::int64_t rows);

struct PipelineLayer : nn::Module<Float32> {
  using Module::Module;
  Variable<float> forward(const Variable<float>& x, const PipelineBatch& batch) const;

  nn::Linear<Float32> linear{*this, "linear", {.in = pipeline_width, .out = pipeline_width}};
  nn::LayerNorm<Float32> norm{*this, "norm", {.width = pipeline_width}};
  std::function<void(const PipelineBatch&)> before = [](const PipelineBatch&) {};
};

// 8 equal layers.
struct PipelineNet : nn::Staged<Float32, Cpu, PipelineBatch> {
  explicit PipelineNet(const ModelContext& context = {});
  Loss<float> loss(const Variable<float>& y, const PipelineBatch& batch) const { return cross_entropy(y, batch.targets); }

  PipelineLayer first{*this, "first"};
  nn::ModuleList<PipelineLayer> inner{*this, "inner", 6};
  PipelineLayer last{*this, "last"};
};

// Trains three steps in stages on the world's first data x pipeline ranks, and on each rank alone. Throws where losses, norms
// or this rank's values differ by more than rounding, or where losses and gradients of the first step are not the same bits
// although one rank of the data axis, or fixed bits, add them in the same order.
void check_pipeline(const Group& world, const PipelineSetup& setup);

}  // namespace trireme::tests
