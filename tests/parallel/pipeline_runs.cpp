#include "pipeline_runs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>

#include "trireme/core/philox.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/optim/adamw.hpp"

namespace trireme::tests {
namespace {

using namespace parallel;

constexpr int num_layers = 8;
constexpr std::int64_t width = pipeline_width;
constexpr std::int64_t samples = 32;  // of a step
constexpr int steps = 3;

std::vector<int> layers_of(const PipelineSchedule& schedule, int rank) {
  const int per_stage = num_layers / schedule.num_stages();
  std::vector<int> layers;
  for (int stage = rank; stage < schedule.num_stages(); stage += schedule.num_ranks) {
    for (int layer = 0; layer < per_stage; ++layer) layers.push_back(stage * per_stage + layer);
  }
  return layers;
}

std::vector<int> all_layers() {
  std::vector<int> layers(num_layers);
  std::iota(layers.begin(), layers.end(), 0);
  return layers;
}

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

// compute(step, first_sample) runs the micro-batches of a step.
template <typename Compute>
Result train(DataParallel& replicas, Model& model, const PipelineSetup& setup, int data_rank, const Compute& compute) {
  Result result;
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.01F});
  for (std::int64_t number = 0; number < steps; ++number) {
    Step step = replicas.begin(number, setup.micro_batches);
    compute(step, samples * number + samples / setup.data * data_rank);
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

std::int64_t rows_of(const PipelineSetup& setup) { return samples / setup.data / setup.micro_batches; }

// The micro-batches of all ranks of the data axis one after the other, without stages.
parallel::GradientSum sum_of(const PipelineSetup& setup) {
  if (!setup.fixed_bits) return parallel::Plain{};
  return parallel::FixedBits{.micro_batches = setup.data * setup.micro_batches};
}

Result train_alone(const Group& world, const PipelineSetup& setup) {
  PipelineSetup alone = setup;
  alone.data = 1;
  alone.micro_batches = setup.data * setup.micro_batches;
  PipelinePart model(all_layers());
  model.initialize({.seed = 3});
  const ProcessMesh mesh(world.split(world.rank(), 0, "alone"));
  DataParallel replicas(model, mesh, {.sum = sum_of(setup)});
  return train(replicas, model, alone, 0, [&](Step& step, std::int64_t first) {
    for (int micro = 0; micro < alone.micro_batches; ++micro, first += rows_of(setup)) {
      step.backward(first, [&] {
        return cross_entropy(model.forward(inputs(first, rows_of(setup)), 0, num_layers), targets(first, rows_of(setup)));
      });
    }
  });
}

Result train_in_stages(const ProcessMesh& mesh, const PipelineSetup& setup) {
  const PipelineSchedule schedule = setup.make_schedule();
  const int rank = mesh.pipeline().rank();
  PipelinePart part(schedule, rank);
  part.initialize({.seed = 3});
  std::int64_t first = 0;
  Pipeline<float> pipeline(mesh, schedule, stages_of(part, schedule, rank, rows_of(setup), &first));
  DataParallel replicas(part, mesh, {.sum = sum_of(setup), .sharding = setup.sharding});
  return train(replicas, part, setup, mesh.data().rank(), [&](Step& step, std::int64_t first_sample) {
    first = first_sample;
    pipeline.run(step, first, rows_of(setup));
  });
}

void require_close(const PipelineSetup& setup, std::string_view what, double got, double wanted, double tolerance) {
  require(std::abs(got - wanted) <= tolerance, "{}: {} is {}, on one rank {}", setup.str(), what, got, wanted);
}

}  // namespace

PipelineSchedule PipelineSetup::make_schedule() const {
  return make_pipeline_schedule(
      {.name = schedule, .num_ranks = pipeline, .num_chunks = chunks, .num_micro_batches = micro_batches});
}

std::string PipelineSetup::str() const {
  return fmt::format("{} on data {} x pipeline {}, {} chunks, {} micro-batches{}", schedule, data, pipeline, chunks,
                     micro_batches, fixed_bits ? ", fixed bits" : "");
}

PipelinePart::PipelinePart(const std::vector<int>& layers) : Module(ModelContext{.seed = 9}) {
  for (const int layer : layers) {
    linears.push_back(std::make_unique<nn::Linear<Float32>>(*this, fmt::format("{}.linear", layer),
                                                            nn::LinearOptions{.in = width, .out = width}));
    norms.push_back(
        std::make_unique<nn::LayerNorm<Float32>>(*this, fmt::format("{}.norm", layer), nn::LayerNormOptions{.width = width}));
  }
}

PipelinePart::PipelinePart(const PipelineSchedule& schedule, int rank) : PipelinePart(layers_of(schedule, rank)) {}

Variable<float> PipelinePart::forward(Variable<float> x, std::size_t begin, std::size_t end) const {
  for (std::size_t index = begin; index < end; ++index) {
    const std::string& stream = linears[index]->name();  // is drawn from twice
    x = add(x, dropout(dropout(tanh(linears[index]->forward(norms[index]->forward(x))), 0.1, stream), 0.1, stream));
  }
  return x;
}

std::vector<PipelineStage<float>> stages_of(const PipelinePart& part, const PipelineSchedule& schedule, int rank,
                                            std::int64_t rows, const std::int64_t* first) {
  std::vector<PipelineStage<float>> stages;
  const auto per_stage = static_cast<std::size_t>(num_layers / schedule.num_stages());
  for (int chunk = 0; chunk < schedule.num_chunks; ++chunk) {
    const int number = chunk * schedule.num_ranks + rank;
    const std::size_t begin = static_cast<std::size_t>(chunk) * per_stage;
    const auto forward = [&part, number, begin, per_stage, rows, first](const Variable<float>& x, int micro_batch) {
      return part.forward(number == 0 ? Variable<float>(inputs(*first + micro_batch * rows, rows)) : x, begin,
                          begin + per_stage);
    };
    PipelineStage<float> stage{.input = {rows, width}, .output = {rows, width}};
    if (number + 1 < schedule.num_stages()) {
      stage.forward = forward;
    } else {
      stage.loss = [forward, rows, first](const Variable<float>& x, int micro_batch) {
        return cross_entropy(forward(x, micro_batch), targets(*first + micro_batch * rows, rows));
      };
    }
    stages.push_back(std::move(stage));
  }
  return stages;
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
