#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <trireme/trireme.hpp>
#include <vector>

#include "gpt_step/matmul_floor.hpp"
#include "gpt_step/training_step.hpp"
#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"

template <typename ModelOptions>
struct StepBenchmarkOptions {
  ModelOptions model;
  std::int64_t batch = 8;  // of one rank
  int steps = 7;
  int threads = 1;
  bool no_floor = false;
  std::string precision = "fp32";
  std::string json;
  std::string turns;
};

struct StepMemory {
  double taken = 0;   // by all ranks together, after forward or after the step, whichever is more
  double needed = 0;  // the least that a step needs
};

// The least that a step needs: on each rank the weights, gradients and the tensors that its tape keeps, and the moments once,
// since the ranks divide them.
template <typename P, typename Step>
StepMemory measure_memory(Step& step, const trireme::Group& world) {
  StepMemory memory;
  step.run([&] { memory.taken = shared_out_bytes(world); });
  memory.taken = std::max(memory.taken, shared_out_bytes(world));
  const double parameters = static_cast<double>(step.gradient_numel());
  const double of_rank = parameters * (2 * sizeof(typename P::Master)) + static_cast<double>(step.kept_bytes());
  memory.needed = world.size() * of_rank + parameters * (2 * sizeof(typename P::Master));
  if (!std::is_same_v<typename P::Compute, typename P::Master>) {
    memory.needed += world.size() * parameters * sizeof(typename P::Compute);
  }
  return memory;
}

template <typename P, typename Model, typename ModelOptions>
int run_step_benchmark(const StepBenchmarkOptions<ModelOptions>& options, const trireme::Group& world) {
  const auto products = products_of_step(options.model, options.batch);
  double operations = 0;
  for (const Product& product : products) operations += product.operations();

  TrainingStep<P, Model> step({.model = options.model, .batch = options.batch}, world);
  for (int warm_up = 0; warm_up < 2; ++warm_up) step.run();
  const StepMemory memory = measure_memory<P>(step, world);
  const double peak_rss = peak_rss_bytes(world);  // before the floor takes its operands

  std::unique_ptr<MatmulFloor> floor;
  const auto make_floor = [&] {
    floor = MatmulFloor::make(products, trireme::dtype_of<typename P::Compute>);
    if (floor) floor->run();
    return floor != nullptr;
  };
  if (!options.turns.empty()) {
    return take_turns(world.rank(), options.turns, [&](const std::string& name) -> std::optional<double> {
      if (name == "step") return slowest_seconds(world, [&] { step.run(); });
      if (name == "memory") return peak_rss;
      if (name == "peak") return operations / (measure_fma_peak() * options.threads);
      if (name != "floor") refuse_turn(name);
      if (!floor && !make_floor()) return std::nullopt;
      return slowest_seconds(world, [&] { floor->run(); });
    });
  }
  const bool lacks_floor = !options.no_floor && !make_floor();
  std::vector<double> step_seconds;
  std::vector<double> floor_seconds;
  for (int round = 0; round < options.steps; ++round) {
    step_seconds.push_back(slowest_seconds(world, [&] { step.run(); }));
    if (floor) floor_seconds.push_back(slowest_seconds(world, [&] { floor->run(); }));
  }
  if (world.rank() != 0) return 0;

  const double step_time = median(step_seconds);
  const double tokens_per_second = static_cast<double>(world.size() * options.batch * options.model.block) / step_time;
  nlohmann::ordered_json result{{"step_seconds", step_time},  {"floor_seconds", nullptr},
                                {"ratio", nullptr},           {"tokens_per_second", tokens_per_second},
                                {"peak_rss_bytes", peak_rss}, {"ranks", world.size()},
                                {"threads", options.threads}, {"precision", name_of(trireme::dtype_of<typename P::Compute>)}};
  fmt::print("step   {:8.1f} ms  {:6.1f} GFLOP/s a rank\n", step_time * 1e3, operations / step_time * 1e-9);
  if (floor) {
    const double floor_time = median(floor_seconds);
    const double peak = measure_fma_peak() * options.threads;
    const double share = operations / floor_time / peak;
    result["floor_seconds"] = floor_time;
    result["ratio"] = step_time / floor_time;
    fmt::print("floor  {:8.1f} ms  {:6.1f} GFLOP/s a rank, {:.0f} % of the float32 FMA peak of {:.1f}\n", floor_time * 1e3,
               operations / floor_time * 1e-9, 100 * share, peak * 1e-9);
    fmt::print("step / floor {:.3f}{}\n", step_time / floor_time,
               share < 0.6 && options.precision == "fp32" ? "  (does not count: the floor is below 60 % of the peak)" : "");
  }
  if (lacks_floor) {
    fmt::print("no floor: this processor has no products of {}\n", name_of(trireme::dtype_of<typename P::Compute>));
  }
  fmt::print("{:.0f} tokens/s on {} ranks x {} threads, peak memory {:.0f} MiB a rank\n", tokens_per_second, world.size(),
             options.threads, peak_rss / (1 << 20));
  fmt::print("memory of all ranks {:.0f} MiB; weights, gradients, moments and tapes {:.0f} MiB; ratio {:.2f}\n",
             memory.taken / (1 << 20), memory.needed / (1 << 20), memory.taken / memory.needed);
  result["taken_bytes"] = memory.taken;
  result["needed_bytes"] = memory.needed;
  write_json(options.json, result);
  return 0;
}

template <typename ModelOptions>
void add_options(CommandLine& command, StepBenchmarkOptions<ModelOptions>& options) {
  command.option("--batch", options.batch, "sequences of one rank");
  command.option("--steps", options.steps, "timed rounds");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--precision", options.precision, "fp32, or bf16: mixed, against a floor of bfloat16 products",
                 {"fp32", "bf16"});
  command.flag("--no-floor", options.no_floor, "time the step alone");
  command.option("--json", options.json, "write the figures here");
  command.option("--turns", options.turns, "a folder: take turns with other programs, see measurement/turns.hpp");
}

// Runs Model<P> in the precision of the options, on the ranks of MPI.
template <template <typename, typename> typename Model, typename ModelOptions>
int launch_step_benchmark(const StepBenchmarkOptions<ModelOptions>& options) {
  using trireme::Cpu, trireme::Float32, trireme::MixedBfloat16;
  return trireme::launch(trireme::BackendKind::mpi, {.threads_per_rank = options.threads}, [&](const trireme::Group& world) {
    return options.precision == "bf16" ? run_step_benchmark<MixedBfloat16, Model<MixedBfloat16, Cpu>>(options, world)
                                       : run_step_benchmark<Float32, Model<Float32, Cpu>>(options, world);
  });
}
