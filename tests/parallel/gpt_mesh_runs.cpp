#include "gpt_mesh_runs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "trireme/optim/lamb.hpp"
#include "trireme/parallel/model_context.hpp"

namespace trireme::tests {
namespace {

constexpr std::int64_t batch = 8;
constexpr int micro_batches = 4;  // of a replica

// [count, gpt_time_steps], of samples from `first` on.
Tensor<std::int32_t> gpt_tokens(std::int64_t step, std::int64_t first, std::int64_t count, int shift) {
  Tensor<std::int32_t> tokens({count, gpt_time_steps});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>((first * gpt_time_steps + i) * 7 + step + shift) % 37;
  }
  return tokens;
}

void require_near(double had, double wanted, const std::string& what) {
  require(std::abs(had - wanted) <= 1e-11 * (1 + std::abs(wanted)), "{}: {} instead of {}", what, had, wanted);
}

void require_parts_near(FlatStore& part, FlatStore& whole) {
  for (int index = 0; index < part.num_parameters(); ++index) {
    const ParameterInfo& parameter = part.parameter(index);
    const Tensor<double> had = part.values<double>(index);
    const Tensor<double> wanted = whole.values<double>(whole.find(parameter.name));
    for (const auto& piece : parameter.placement.pieces()) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        require_near(had.data()[piece.here + i], wanted.data()[piece.whole + i], parameter.name);
      }
    }
  }
}

}  // namespace

std::string GptLayout::str() const {
  return fmt::format("data {} x pipeline {} x tensor {}{}, {}, {} chunks{}", data, pipeline, tensor,
                     sequence_parallel ? ", sequence-parallel" : "", schedule, chunks,
                     layer_costs.empty() ? "" : ", stages by cost");
}

std::vector<data::TokenBatch> gpt_batches(std::int64_t step, std::int64_t first, int count, std::int64_t rows) {
  std::vector<data::TokenBatch> batches;
  for (int micro = 0; micro < count; ++micro, first += rows) {
    batches.push_back(
        {.tokens = gpt_tokens(step, first, rows, 0), .targets = gpt_tokens(step, first, rows, 3), .first_sample = first});
  }
  return batches;
}

GptTraining train_gpt(const Group& world, const GptLayout& layout) {
  const ProcessMesh mesh(world, {.data = layout.data, .pipeline = layout.pipeline, .tensor = layout.tensor});
  const auto context = parallel::model_context(mesh, {.sequence_parallel = layout.sequence_parallel,
                                                      .num_chunks = layout.chunks,
                                                      .layer_costs = layout.layer_costs,
                                                      .seed = 3});
  models::GptOptions options = gpt_options;
  options.attention_dropout = layout.attention_dropout;
  auto model = std::make_unique<models::Gpt<Float64>>(options, context);
  model->initialize({.seed = 7});
  parallel::DataParallel replicas(*model, mesh,
                                  {.sharding = layout.sharding,
                                   .buckets = {.bytes = 4000, .first_bytes = 400, .slice_bytes = 2000},
                                   .schedule = layout.schedule});
  optim::Lamb<Float64> optimizer(*model, {.learning_rate = 0.01});

  const std::int64_t rows = batch / layout.data / micro_batches;
  const std::int64_t first = mesh.data().rank() * rows * micro_batches;
  GptTraining result;
  for (std::int64_t number = 0; number < 3; ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    step.backward(*model, gpt_batches(number, first, micro_batches, rows));
    step.update(optimizer, {.clip_norm = 0.5});
    result.summaries.push_back(step.finish());
  }
  result.model = std::move(model);
  return result;
}

void require_same_training(const GptTraining& had, const GptTraining& whole) {
  require(had.summaries.size() == whole.summaries.size(), "{} steps", had.summaries.size());
  for (std::size_t step = 0; step < had.summaries.size(); ++step) {
    require_near(had.summaries[step].loss(), whole.summaries[step].loss(), "loss");
    require_near(had.summaries[step].gradient_norm, whole.summaries[step].gradient_norm, "norm");
  }
  require_parts_near(had.model->store(), whole.model->store());
}

}  // namespace trireme::tests
