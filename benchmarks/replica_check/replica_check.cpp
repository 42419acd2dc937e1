// The time that the comparison of replicas adds to a training step: a GPT's steps with and without it, in turn.
//   OMP_NUM_THREADS=1 mpirun -n 2 replica_check [--json FILE]

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gpt_step/training_step.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/files/digest.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model{.layers = 6, .heads = 6, .width = 384, .block = 256, .vocabulary = 256};
  std::int64_t batch = 8;
  int check_replicas = 100;
  int rounds = 20;
  std::string json;
};

// Seconds in which one thread digests this many elements; the median of a few measurements.
double digest_seconds(std::int64_t count) {
  const auto values = Tensor<float>::full({count}, 0.5F);
  std::vector<double> seconds;
  std::uint64_t sum = 0;
  for (int round = 0; round < 9; ++round) {
    seconds.push_back(seconds_of([&] { sum += digest<float>("values", std::span<const float>(values.span())); }));
  }
  require(sum != 0, "a digest of 0");
  return median(seconds);
}

int benchmark(const Options& options, const Group& world) {
  const auto step_options = [&](int check_replicas) {
    return TrainingStepOptions{
        .model = options.model, .batch = options.batch, .data_parallel = {.check_replicas = check_replicas}};
  };
  TrainingStep<Float32> with(step_options(options.check_replicas), world);
  TrainingStep<Float32> without(step_options(0), world);
  std::vector<double> seconds_with;
  std::vector<double> seconds_without;
  std::vector<double> ratios;
  for (int round = -2; round < options.rounds; ++round) {
    double first = 0;
    double second = 0;
    // They take turns to be first, since the second one finds other data in the caches.
    if (round % 2 == 0) {
      first = slowest_seconds(world, [&] { with.run(); });
      second = slowest_seconds(world, [&] { without.run(); });
    } else {
      second = slowest_seconds(world, [&] { without.run(); });
      first = slowest_seconds(world, [&] { with.run(); });
    }
    if (round < 0) continue;
    seconds_with.push_back(first);
    seconds_without.push_back(second);
    ratios.push_back(first / second);
  }
  const std::int64_t count = with.gradient_numel() / options.check_replicas;
  const double own = digest_seconds(count);
  if (world.rank() != 0) return 0;
  const double step = median(seconds_without);
  fmt::print("{:.1f} million parameters, {} x {} tokens a rank, {} ranks\n", 1e-6 * static_cast<double>(with.gradient_numel()),
             options.batch, options.model.block, world.size());
  fmt::print("step without comparison              {:9.3f} ms\n", step * 1e3);
  fmt::print("step with 1/{} of the values compared {:9.3f} ms, ratio {:.4f} (median of pairs)\n", options.check_replicas,
             median(seconds_with) * 1e3, median(ratios));
  fmt::print("its digest alone                     {:9.3f} ms, {:.2f} GB/s, {:.3f} % of a step\n", own * 1e3,
             4e-9 * static_cast<double>(count) / own, 100 * own / step);
  const nlohmann::ordered_json result{
      {"seconds_with", median(seconds_with)},     {"seconds_without", step}, {"ratio", median(ratios)}, {"digest_seconds", own},
      {"check_replicas", options.check_replicas}, {"ranks", world.size()}};
  write_json(options.json, result);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Steps of a GPT with and without the comparison of replicas: float32, AdamW, clipping.");
  command.option("--batch", options.batch, "sequences of a rank");
  command.option("--block", options.model.block, "tokens of one");
  command.option("--check-replicas", options.check_replicas, "steps in which all is compared once");
  command.option("--rounds", options.rounds, "timed steps of each, in turn");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return benchmark(options, world); });
}
