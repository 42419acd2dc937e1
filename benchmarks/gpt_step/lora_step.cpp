// A training step of a Llama's adapters and a step of all its weights, in turn in one run:
//   OMP_NUM_THREADS=1 mpirun -n 2 lora_step

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <trireme/trireme.hpp>
#include <vector>

#include "gpt_step/training_step.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"

using namespace trireme;

namespace {

struct Options {
  models::LlamaOptions model;
  LoraOptions lora{.rank = 8, .alpha = 16, .targets = {"q_proj", "v_proj"}};
  std::int64_t batch = 8;  // of one rank
  int steps = 11;
  int threads = 1;
  std::string only;
  std::string precision = "fp32";
  std::string json;
};

template <typename P>
struct Side {
  using Step = TrainingStep<P, models::Llama<P>>;

  Side(const Options& options, const ModelContext& context, const Group& world)
      : step({.model = options.model, .batch = options.batch, .context = context}, world) {
    step.run();
    step.run();
  }

  Step step;
  std::vector<double> seconds = {};
};

ModelContext context_of(const Options& options) {
  ModelContext context;
  context.lora = options.lora;
  return context;
}

// Measures one side alone, since it would reuse memory that the other side has freed.
template <typename P>
int measure_one(const Options& options, const Group& world) {
  Side<P> side(options, options.only == "adapters" ? context_of(options) : ModelContext(), world);
  for (int round = 0; round < options.steps; ++round) side.seconds.push_back(slowest_seconds(world, [&] { side.step.run(); }));
  const double peak = peak_rss_bytes(world);
  if (world.rank() != 0) return 0;
  fmt::print("{} {:.1f} ms, peak memory {:.0f} MiB a rank on {} ranks x {} threads\n", options.only, median(side.seconds) * 1e3,
             peak / (1 << 20), world.size(), options.threads);
  write_json(options.json, {{"seconds", median(side.seconds)}, {"peak_rss_bytes", peak}, {"ranks", world.size()}});
  return 0;
}

template <typename P>
int compare(const Options& options, const Group& world) {
  if (!options.only.empty()) return measure_one<P>(options, world);
  Side<P> adapters(options, context_of(options), world);
  Side<P> all(options, {}, world);
  std::vector<double> ratios;
  for (int round = 0; round < options.steps; ++round) {
    for (Side<P>* side : {&all, &adapters}) {
      side->seconds.push_back(slowest_seconds(world, [&] { side->step.run(); }));
    }
    ratios.push_back(adapters.seconds.back() / all.seconds.back());
  }
  if (world.rank() != 0) return 0;
  const auto print = [](const char* name, const Side<P>& side) {
    fmt::print("{:10} {:8.1f} ms, {:8.3f} million moments\n", name, median(side.seconds) * 1e3,
               2e-6 * static_cast<double>(side.step.gradient_numel()));
  };
  print("weights", all);
  print("adapters", adapters);
  fmt::print("adapters / weights {:.3f} on {} ranks x {} threads\n", median(ratios), world.size(), options.threads);
  write_json(options.json, {{"ratio", median(ratios)},
                            {"weights_seconds", median(all.seconds)},
                            {"adapters_seconds", median(adapters.seconds)},
                            {"weights_moments", 2 * all.step.gradient_numel()},
                            {"adapters_moments", 2 * adapters.step.gradient_numel()},
                            {"ranks", world.size()}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.model.kv_heads = 2;
  options.model.block = 256;
  options.model.tied = true;
  CommandLine command("A step of LoRA beside one of all weights; the defaults are the 9.5M Llama.");
  command.option("--layers", options.model.layers, "blocks");
  command.option("--heads", options.model.heads, "of queries");
  command.option("--kv-heads", options.model.kv_heads, "of keys and values");
  command.option("--width", options.model.width, "of the residual stream");
  command.option("--hidden", options.model.hidden, "features of a block's MLP");
  command.option("--block", options.model.block, "tokens of a sequence");
  command.option("--vocabulary", options.model.vocabulary, "tokens there are");
  command.option("--rank", options.lora.rank, "of the adapters");
  command.option("--targets", options.lora.targets, "linear layers with adapters, or all-linear");
  command.option("--batch", options.batch, "sequences of one rank");
  command.option("--steps", options.steps, "timed rounds");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--precision", options.precision, "fp32, or bf16: mixed", {"fp32", "bf16"});
  command.option("--only", options.only, "one side, with its peak memory", {"adapters", "weights"});
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads}, [&](const Group& world) {
    return options.precision == "bf16" ? compare<MixedBfloat16>(options, world) : compare<Float32>(options, world);
  });
}
