// The speed-up of a step of a GPT with a heavy output layer when stages are cut by measured costs instead of equally many
// blocks.
//   layer_costs_benchmark --ranks 2 --vocabulary 16384 [--json FILE]

#include "trireme/models/architectures/layer_costs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/nn/staged/divide_layers.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

using namespace trireme;

namespace {

struct Options {
  int ranks = 2;
  int micro_batches = 8;
  std::int64_t batch = 2;  // of a micro-batch
  models::GptOptions gpt{.layers = 8, .heads = 4, .width = 256, .block = 128, .vocabulary = 16384};
  int rounds = 10;
  std::string json;
};

class Replica {
 public:
  Replica(const ProcessMesh& mesh, const Options& options, const std::vector<double>& costs)
      : model_(options.gpt, parallel::model_context(mesh, {.layer_costs = costs})),
        data_parallel_((model_.initialize(), model_), mesh) {
    const Tensor<std::int32_t> tokens({options.batch, options.gpt.block});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      tokens.data()[i] = static_cast<std::int32_t>(i * 7919 % options.gpt.vocabulary);
    }
    for (int micro = 0; micro < options.micro_batches; ++micro) {
      batches_.push_back({.tokens = tokens, .targets = tokens, .first_sample = micro * options.batch});
    }
  }

  void step() {
    parallel::Step step = data_parallel_.begin(next_step_++, static_cast<int>(batches_.size()));
    step.backward(model_, batches_);
    step.finish();
  }

 private:
  models::Gpt<Float32> model_;
  parallel::DataParallel data_parallel_;
  std::vector<data::TokenBatch> batches_;
  std::int64_t next_step_ = 0;
};

// Seconds of a step in virtual time, if forward is a third of each stage.
double predicted_seconds(const Options& options, const std::vector<double>& costs, const std::vector<Range>& division) {
  const auto schedule =
      parallel::make_pipeline_schedule({.num_ranks = options.ranks, .num_micro_batches = options.micro_batches});
  std::vector<parallel::StageSeconds> stages;
  for (const auto& [begin, end] : division) {
    const double cost = std::accumulate(costs.begin() + begin, costs.begin() + end, 0.0);
    stages.push_back({.forward = cost / 3, .backward = cost * 2 / 3, .weight_gradient = 0});
  }
  return parallel::simulate(schedule, stages).seconds;
}

void compare(const Group& world, const Options& options) {
  const ProcessMesh mesh(world, {.pipeline = options.ranks});
  std::vector<double> costs(static_cast<std::size_t>(options.gpt.layers) + 2);
  if (world.rank() == 0) costs = models::measured_layer_costs<Float32>(options.gpt, options.batch);
  world.broadcast(std::span(costs), 0).wait_on_host();
  std::vector<double> blocks(costs.size(), 1);
  blocks.front() = blocks.back() = 0;
  Replica by_blocks(mesh, options, {});
  Replica by_costs(mesh, options, costs);

  std::vector<double> ratios;
  std::vector<double> seconds[2];
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    const double of_blocks = slowest_seconds(world, [&] { by_blocks.step(); });
    const double of_costs = slowest_seconds(world, [&] { by_costs.step(); });
    if (round < 0) continue;
    ratios.push_back(of_blocks / of_costs);
    seconds[0].push_back(of_blocks);
    seconds[1].push_back(of_costs);
  }
  if (world.rank() != 0) return;
  const std::vector<Range> division = nn::divide_layers(costs, options.ranks);
  const double predicted =
      predicted_seconds(options, costs, nn::divide_layers(blocks, options.ranks)) / predicted_seconds(options, costs, division);
  fmt::print("embedding {:.2f} ms, each block {:.2f} ms, output layer {:.2f} ms; blocks of the stages:", 1e3 * costs.front(),
             1e3 * costs[1], 1e3 * costs.back());
  for (const auto& [begin, end] : division) {
    fmt::print(" {}", std::min<std::int64_t>(end - 1, options.gpt.layers) - std::max<std::int64_t>(begin - 1, 0));
  }
  fmt::print("\nstep: {:.1f} ms with equally many blocks, {:.1f} ms by costs; ratio {:.2f}, predicted {:.2f}\n",
             1e3 * median(seconds[0]), 1e3 * median(seconds[1]), median(ratios), predicted);
  write_json(
      options.json,
      {{"ranks", options.ranks}, {"vocabulary", options.gpt.vocabulary}, {"ratio", median(ratios)}, {"predicted", predicted}});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Steps of a GPT in stages: equally many blocks each, and by what layers cost");
  command.option("--ranks", options.ranks, "ranks, one thread and stage each");
  command.option("--micro-batches", options.micro_batches, "micro-batches of a step");
  command.option("--batch", options.batch, "sequences of a micro-batch");
  command.options_of(options.gpt);
  command.option("--rounds", options.rounds, "steps of each, in turn", {.least = 1, .most = 1000});
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::thread, {.ranks = options.ranks, .threads_per_rank = 1}, [&](const Group& world) {
    compare(world, options);
    return 0;
  });
}
