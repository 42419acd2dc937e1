// The part of a step after backward, sharded and replicated: reduce the gradients of all ranks, take their norm, update by
// AdamW, give every rank the new values.
//   OMP_NUM_THREADS=1 mpirun -n 2 sharded_step [--json FILE]

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t millions = 85;
  int rounds = 15;
  double bucket_mb = 25;
  std::string json;
};

constexpr std::int64_t parameter_numel = 768 * 3072;  // the largest matrices of a GPT-2

struct GradientAtNoCost {
  static constexpr std::string_view name = "gradient at no cost";

  void forward(const auto&...) const {}
  void backward(const Tensor<float>& dy, const Gradient<float>& dsum, const Gradient<float>& dparameter) const {
    dparameter.contribute([](Tensor<float>&, bool) {});
    dsum.contribute([&](Tensor<float>& out, bool) { out.data()[0] = dy.data()[0]; });
  }
};

// Parameters that get their gradients at no cost: the measurement begins where backward ends.
struct Parameters : nn::Module<Float32> {
  explicit Parameters(std::int64_t numel) {
    for (std::int64_t begin = 0; begin < numel; begin += parameter_numel) {
      const std::int64_t count = std::min(parameter_numel, numel - begin);
      all.push_back(add_parameter(fmt::format("weight{}", begin / parameter_numel), {count}, Initializer::constant(0)));
    }
  }

  Loss<float, Cpu> loss() const {
    Tensor<float> value({1});
    value.data()[0] = 0;
    Variable<float> sum(value);
    for (const auto& parameter : all) {
      sum = record(GradientAtNoCost{}, Result<float>{.existing = value}, sum, parameter.variable());
    }
    return {.sum = sum, .target_weight = 1, .nominal_targets = 1};
  }

  std::vector<Parameter<float>> all;
};

class Step {
 public:
  Step(const Options& options, const Group& world, parallel::Sharding sharding)
      : world_(world),
        model_(options.millions * 1'000'000),
        data_parallel_(model_, ProcessMesh(world),
                       {.sharding = sharding, .buckets = {.bytes = static_cast<std::int64_t>(options.bucket_mb * (1 << 20))}}),
        optimizer_(model_, {.learning_rate = 1e-3}) {}

  // The slowest rank's seconds. Gradients are written first, outside of the time.
  double run() {
    float next = static_cast<float>(world_.rank() + 1) * 1e-4F;
    for (float& gradient : model_.store().gradients<float>().span()) {
      gradient = next;
      next = next > 1e-2F ? 1e-4F : next * 1.01F;
    }
    parallel::Step step = data_parallel_.begin(next_step_++);
    return slowest_seconds(world_, [&] {
      step.backward(0, [&] { return model_.loss(); });
      step.update(optimizer_, {.clip_norm = 1});
    });
  }

  std::span<const float> values() { return model_.store().values<float>().span(); }

 private:
  Group world_;
  Parameters model_;
  parallel::DataParallel data_parallel_;
  optim::AdamW<Float32> optimizer_;
  std::int64_t next_step_ = 0;
};

// Checks that both ways train the same model.
void require_same_values(Step& sharded, Step& replicated, const Group& world) {
  double difference = 0;
  const auto expected = replicated.values();
  const auto values = sharded.values();
  for (std::size_t index = 0; index < values.size(); ++index) {
    difference = std::max(difference, static_cast<double>(std::abs(values[index] - expected[index])));
  }
  world.agree([&] { require(difference < 1e-5, "sharded and replicated steps lead to values that differ by {}", difference); });
  require_same(world, "result", {{"values", fmt::format("{:016x}", digest<float>("values", values))}});
}

int benchmark(const Options& options, const Group& world) {
  Step sharded(options, world, parallel::Sharding::optimizer);
  Step replicated(options, world, parallel::Sharding::none);
  for (int warm_up = 0; warm_up < 2; ++warm_up) {
    sharded.run();
    replicated.run();
  }
  std::vector<double> sharded_seconds;
  std::vector<double> replicated_seconds;
  for (int round = 0; round < options.rounds; ++round) {
    sharded_seconds.push_back(sharded.run());
    replicated_seconds.push_back(replicated.run());
  }
  require_same_values(sharded, replicated, world);
  if (world.rank() != 0) return 0;

  const double with = median(sharded_seconds);
  const double without = median(replicated_seconds);
  fmt::print("{} million parameters, {} ranks\n", options.millions, world.size());
  fmt::print("reduce-scatter + norm + AdamW of the own part + all-gather  {:8.2f} ms\n", with * 1e3);
  fmt::print("all-reduce + norm + replicated AdamW                        {:8.2f} ms\n", without * 1e3);
  fmt::print("sharded / replicated {:.3f}\n", with / without);
  const nlohmann::ordered_json result{{"sharded_seconds", with},
                                      {"replicated_seconds", without},
                                      {"ratio", with / without},
                                      {"million_parameters", options.millions},
                                      {"ranks", world.size()},
                                      {"bucket_mb", options.bucket_mb},
                                      {"rounds", {{"sharded", sharded_seconds}, {"replicated", replicated_seconds}}}};
  write_json(options.json, result);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Sharded against replicated steps from the end of the backward pass on: float32, AdamW, clipping.");
  command.option("--millions", options.millions, "parameters", {.least = 1, .most = 1'000'000});
  command.option("--rounds", options.rounds, "timed steps of each, in turn");
  command.option("--bucket-mb", options.bucket_mb, "MiB of gradients that are reduced together");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return benchmark(options, world); });
}
