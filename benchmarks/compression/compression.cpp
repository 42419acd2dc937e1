// Steps of a GPT with each compression and steps without, in one run. For slow links.
//   mpirun -n N compression_benchmark [--compress topk:0.01,powersgd:4] [--batch 2] [--json FILE]

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model{.layers = 6, .heads = 6, .width = 384, .block = 256, .vocabulary = 256};
  std::int64_t batch = 2;  // sequences of a rank
  std::vector<std::string> compressions = {"fp16", "int8", "topk:0.01", "powersgd:4"};
  double bucket_mb = 4;
  int steps = 5;
  bool between_ranks = false;
  std::string json;
};

struct Row {
  std::string compression;
  double step_seconds = 0;     // median, slowest rank
  double waiting_seconds = 0;  // the part of the step that waits for other ranks
  double megabytes_sent = 0;   // by rank 0 to other nodes, a step
};

class Run {
 public:
  Run(const Options& options, const std::string& compression, const Group& world)
      : options_(options),
        world_(world),
        model_(options.model),
        data_parallel_(model_, ProcessMesh(world), data_parallel_options(options, compression)),
        optimizer_(model_, {.learning_rate = 1e-4}) {
    model_.initialize();
  }

  // The slowest rank's seconds of a step, and of waiting in it.
  std::array<double, 2> step() {
    const auto tokens = random_tokens();
    double waited = 0;
    const double seconds = slowest_seconds(world_, [&] {
      parallel::Step step = data_parallel_.begin(next_step_++);
      step.backward(0, [&] { return model_.loss(tokens, tokens); });
      step.update(optimizer_, {.clip_norm = 1});
      waited = step.finish().exposed_communication_seconds;
    });
    world_.all_reduce(std::span(&waited, 1), ReduceOp::max).wait_on_host();
    return {seconds, waited};
  }

  std::uint64_t bytes_sent() const { return data_parallel_.bytes_sent(); }

 private:
  static parallel::ParallelOptions data_parallel_options(const Options& options, const std::string& compression) {
    parallel::ParallelOptions result{.sharding = parallel::Sharding::none,
                                     .buckets = {.bytes = static_cast<std::int64_t>(options.bucket_mb * (1 << 20))}};
    if (const auto hook = parallel::parse_compression(compression)) {
      result.sum = parallel::Hooked{
          {.hook = hook,
           .only_if_faster = false,
           .between = options.between_ranks ? parallel::CompressionBetween::ranks : parallel::CompressionBetween::nodes}};
    }
    return result;
  }

  Tensor<std::int32_t> random_tokens() {
    Tensor<std::int32_t> tokens({options_.batch, options_.model.block});
    for (std::int32_t& token : tokens.span()) {
      token = static_cast<std::int32_t>(philox(1, static_cast<std::uint64_t>(world_.rank()), next_token_++)[0] % 256);
    }
    return tokens;
  }

  const Options& options_;
  Group world_;
  models::Gpt<Float32> model_;
  parallel::DataParallel data_parallel_;
  optim::AdamW<Float32> optimizer_;
  std::int64_t next_step_ = 0;
  std::uint64_t next_token_ = 0;
};

Row measure(const Options& options, const std::string& compression, const Group& world) {
  Run run(options, compression, world);
  run.step();  // allocates memory and makes plans
  std::vector<double> steps;
  std::vector<double> waiting;
  const std::uint64_t sent = run.bytes_sent();
  for (int step = 0; step < options.steps; ++step) {
    const auto [seconds, waited] = run.step();
    steps.push_back(seconds);
    waiting.push_back(waited);
  }
  return {.compression = compression,
          .step_seconds = median(steps),
          .waiting_seconds = median(waiting),
          .megabytes_sent = 1e-6 * static_cast<double>(run.bytes_sent() - sent) / options.steps};
}

int benchmark(const Options& options, const Group& world) {
  std::vector<Row> rows = {measure(options, "none", world)};
  for (const std::string& compression : options.compressions) rows.push_back(measure(options, compression, world));
  if (world.rank() != 0) return 0;
  fmt::print("{} ranks, {} sequences of {} each, {} layers of width {}\n", world.size(), options.batch, options.model.block,
             options.model.layers, options.model.width);
  fmt::print("{:>12}  {:>9}  {:>10}  {:>9}  {:>7}\n", "compression", "step ms", "waiting ms", "MB a step", "speedup");
  nlohmann::ordered_json result = nlohmann::json::array();
  for (const Row& row : rows) {
    const double speedup = rows.front().step_seconds / row.step_seconds;
    fmt::print("{:>12}  {:9.1f}  {:10.1f}  {:9.3f}  {:7.2f}\n", row.compression, 1e3 * row.step_seconds,
               1e3 * row.waiting_seconds, row.megabytes_sent, speedup);
    result.push_back({{"compression", row.compression},
                      {"step_seconds", row.step_seconds},
                      {"waiting_seconds", row.waiting_seconds},
                      {"megabytes_sent", row.megabytes_sent},
                      {"speedup", speedup}});
  }
  write_json(options.json, result);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A GPT's steps with each compression beside steps without: float32, AdamW, clipping.");
  command.option("--compress", options.compressions, "which ones");
  command.option("--layers", options.model.layers, "transformer blocks");
  command.option("--width", options.model.width, "of the model; 6 heads divide it");
  command.option("--batch", options.batch, "sequences of 256 tokens a rank");
  command.option("--bucket-mb", options.bucket_mb, "MiB of gradients that are reduced together");
  command.option("--steps", options.steps, "of which the median counts");
  command.flag("--between-ranks", options.between_ranks, "compress between all ranks, not between nodes");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return benchmark(options, world); });
}
