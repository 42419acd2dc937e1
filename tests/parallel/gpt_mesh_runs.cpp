#include "gpt_mesh_runs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "trireme/optim/lamb.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/pipeline.hpp"

namespace trireme::tests {
namespace {

constexpr std::int64_t batch = 8;
constexpr int micro_batches = 4;  // of a replica

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

Tensor<std::int32_t> gpt_tokens(std::int64_t step, std::int64_t first, std::int64_t count, int shift) {
  Tensor<std::int32_t> tokens({count, gpt_time_steps});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>((first * gpt_time_steps + i) * 7 + step + shift) % 37;
  }
  return tokens;
}

GptTraining train_gpt(const Group& world, const GptLayout& layout) {
  const ProcessMesh mesh(world, {.data = layout.data, .pipeline = layout.pipeline, .tensor = layout.tensor});
  const auto context = parallel::model_context(mesh, {.sequence_parallel = layout.sequence_parallel,
                                                      .num_chunks = layout.chunks,
                                                      .layer_costs = layout.layer_costs,
                                                      .seed = 3});
  auto model = std::make_unique<models::Gpt<Float64>>(gpt_options, context);
  model->initialize({.seed = 7});
  parallel::DataParallel replicas(
      *model, mesh, {.sharding = layout.sharding, .buckets = {.bytes = 4000, .first_bytes = 400, .slice_bytes = 2000}});
  optim::Lamb<Float64> optimizer(*model, {.learning_rate = 0.01});

  const std::int64_t samples = batch / layout.data / micro_batches;
  const std::int64_t first_of_rank = mesh.data().rank() * samples * micro_batches;
  std::int64_t number = 0;  // of the step
  const auto first_of = [&](int micro_batch) { return first_of_rank + micro_batch * samples; };
  std::vector<parallel::PipelineStage<double>> stages;
  for (const int stage : context.stages()) {
    const Shape between = model->stage_shape(samples, gpt_time_steps);
    parallel::PipelineStage<double> described;
    if (stage > 0) described.input = between;
    if (stage + 1 < context.num_stages()) {
      described.output = between;
      described.forward = [&, stage](const Variable<double>& x, int micro_batch) {
        return model->stage(stage, x, gpt_tokens(number, first_of(micro_batch), samples, 0));
      };
    } else {
      described.loss = [&](const Variable<double>& x, int micro_batch) {
        const auto read = gpt_tokens(number, first_of(micro_batch), samples, 0);
        const auto targets = gpt_tokens(number, first_of(micro_batch), samples, 3);
        return context.num_stages() == 1 ? model->loss(read, targets) : model->last_stage(x, targets);
      };
    }
    stages.push_back(std::move(described));
  }
  const auto schedule = parallel::make_pipeline_schedule(
      {.name = layout.schedule, .num_ranks = layout.pipeline, .num_chunks = layout.chunks, .num_micro_batches = micro_batches});
  parallel::Pipeline<double> pipeline(mesh, schedule, std::move(stages));
  GptTraining result;
  for (; number < 3; ++number) {
    parallel::Step step = replicas.begin(number, micro_batches);
    pipeline.run(step, first_of_rank, samples);
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
