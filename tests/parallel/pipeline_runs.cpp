#include "pipeline_runs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "trireme/core/philox.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/model_context.hpp"

namespace trireme::tests {
namespace {

using namespace parallel;

constexpr std::int64_t width = pipeline_width;
constexpr std::int64_t samples = 32;  // of a step
constexpr int steps = 3;

Tensor<float> inputs(std::int64_t first, std::int64_t count) {
  Tensor<float> x({count, width});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data()[i] = static_cast<float>(philox_normal(1, 2, static_cast<std::uint64_t>(first * width + i)));
  }
  return x;
}

Tensor<std::int32_t> targets(std::int64_t first, std::int64_t count) {
  Tensor<std::int32_t> numbers({count});
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t sample = first + row;
    numbers.data()[row] = sample % 5 == 0 ? ops::ignored_target : static_cast<std::int32_t>(sample % width);
  }
  return numbers;
}

using Values = std::map<std::string, std::vector<float>>;  // by parameter

struct Result {
  std::vector<double> losses;
  std::vector<double> norms;
  Values gradients;  // of the first step
  Values values;     // after the last one
};

void note(Values& into, FlatStore& store, bool gradients) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    const Tensor<float> tensor = gradients ? store.gradient<float>(index) : store.values<float>(index);
    into[store.parameter(index).name].assign(tensor.data(), tensor.data() + tensor.numel());
  }
}

template <typename Backward>
Result train(PipelineNet& model, const ProcessMesh& mesh, const PipelineSetup& setup, const ParallelOptions& options,
             const Backward& backward) {
  model.initialize({.seed = 3});
  DataParallel replicas(model, mesh, options);
  Result result;
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.01F});
  for (std::int64_t number = 0; number < steps; ++number) {
    Step step = replicas.begin(number, setup.micro_batches);
    backward(step, pipeline_batches(samples * number + samples / setup.data * mesh.data().rank(), setup.micro_batches,
                                    samples / setup.data / setup.micro_batches));
    const StepSummary& summary = step.finish();
    replicas.gather_gradients();
    if (number == 0) note(result.gradients, model.store(), true);
    result.losses.push_back(summary.loss());
    result.norms.push_back(summary.gradient_norm);
    step.update(optimizer, {.clip_norm = 0.5});
  }
  note(result.values, model.store(), false);
  return result;
}

parallel::GradientSum sum_of(const PipelineSetup& setup) {
  if (!setup.fixed_bits) return parallel::Plain{};
  return parallel::FixedBits{.micro_batches = setup.data * setup.micro_batches};
}

// The micro-batches of all ranks of the data axis one after the other, without stages.
Result train_alone(const Group& world, const PipelineSetup& setup) {
  PipelineSetup alone = setup;
  alone.data = 1;
  alone.micro_batches = setup.data * setup.micro_batches;
  PipelineNet model(ModelContext{.seed = 9});
  const ProcessMesh mesh(world.split(world.rank(), 0, "alone"));
  return train(model, mesh, alone, {.sum = sum_of(setup)}, [&](Step& step, const std::vector<PipelineBatch>& batches) {
    for (const PipelineBatch& batch : batches) {
      step.backward(batch, [&] { return model.loss(model.forward(batch), batch); });
    }
  });
}

Result train_in_stages(const ProcessMesh& mesh, const PipelineSetup& setup) {
  PipelineNet model(model_context(mesh, {.num_chunks = setup.chunks, .seed = 9}));
  const ParallelOptions options{.sum = sum_of(setup), .sharding = setup.sharding, .schedule = setup.schedule};
  return train(model, mesh, setup, options,
               [&](Step& step, const std::vector<PipelineBatch>& batches) { step.backward(model, batches); });
}

void require_close(const PipelineSetup& setup, std::string_view what, double got, double wanted, double tolerance) {
  require(std::abs(got - wanted) <= tolerance, "{}: {} is {}, on one rank {}", setup.str(), what, got, wanted);
}

}  // namespace

std::string PipelineSetup::str() const {
  return fmt::format("{} on data {} x pipeline {}, {} chunks, {} micro-batches{}", schedule, data, pipeline, chunks,
                     micro_batches, fixed_bits ? ", fixed bits" : "");
}

std::vector<PipelineBatch> pipeline_batches(std::int64_t first, int count, std::int64_t rows) {
  std::vector<PipelineBatch> batches;
  for (int micro = 0; micro < count; ++micro, first += rows) {
    batches.push_back({.x = inputs(first, rows), .targets = targets(first, rows), .first_sample = first});
  }
  return batches;
}

Variable<float> PipelineLayer::forward(const Variable<float>& x, const PipelineBatch& batch) const {
  before(batch);
  const std::string& stream = linear.name();  // is drawn from twice
  return add(x, dropout(dropout(tanh(linear.forward(norm.forward(x))), 0.1, stream), 0.1, stream));
}

PipelineNet::PipelineNet(const ModelContext& context) : Staged(context) {
  layers(layer({first}, [this](const PipelineBatch& batch) { return first.forward(batch.x, batch); }), inner, last);
}

void check_pipeline(const Group& world, const PipelineSetup& setup) {
  const int ranks = setup.data * setup.pipeline;
  const Group used = world.split(world.rank() < ranks ? 0 : 1, world.rank(), "pipelines");
  if (world.rank() >= ranks) return;
  const Result wanted = train_alone(used, setup);
  const Result got = train_in_stages(ProcessMesh(used, {.data = setup.data, .pipeline = setup.pipeline}), setup);
  for (std::size_t step = 0; step < steps; ++step) {
    require_close(setup, "a loss", got.losses[step], wanted.losses[step], 1e-6);
    require_close(setup, "a norm", got.norms[step], wanted.norms[step], 1e-5);
  }
  require(wanted.losses.back() < wanted.losses.front(), "nothing was learned");
  const bool same_order = setup.data == 1 || setup.fixed_bits;
  require(!same_order || got.losses[0] == wanted.losses[0], "{}: other bits of the loss", setup.str());
  const bool same_bits = setup.fixed_bits;  // of every step: the norms that clip are too
  require(!same_bits || (got.losses == wanted.losses && got.norms == wanted.norms), "{}: other bits of losses or norms",
          setup.str());
  for (const auto& [name, values] : got.values) {
    require(!same_order || got.gradients.at(name) == wanted.gradients.at(name), "{}: other bits of the gradient of {}",
            setup.str(), name);
    require(!same_bits || values == wanted.values.at(name), "{}: other bits of {}", setup.str(), name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      require_close(setup, name, static_cast<double>(values[i]), static_cast<double>(wanted.values.at(name)[i]), 1e-4);
    }
  }
}

}  // namespace trireme::tests
