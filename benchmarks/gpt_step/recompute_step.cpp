// A training step of a GPT that computes its blocks again in the backward pass, and one that keeps them, in turn in one run:
//   OMP_NUM_THREADS=1 recompute_step

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <trireme/trireme.hpp>
#include <vector>

#include "gpt_step/training_step.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model;
  std::int64_t batch = 8;  // of one rank
  int layers = all_layers;
  int steps = 15;
  int threads = 1;
  std::string precision = "fp32";
  std::string json;
};

// The largest number of bytes in use after any operation, beyond those at the beginning.
class Peak : public Observer {
 public:
  void after(Pass, const OperationView&) override { most_ = std::max(most_, in_use()); }
  double bytes() const { return static_cast<double>(most_ - before_); }

 private:
  static std::size_t in_use() { return device::host_memory_statistics().in_use_bytes; }
  std::size_t before_ = in_use();
  std::size_t most_ = before_;
};

template <typename P>
struct Side {
  Side(const Options& options, int recompute_layers, const Group& world)
      : step({.model = options.model, .batch = options.batch, .context = {.recompute_layers = recompute_layers}}, world) {
    step.run();
    Peak peak;
    const Observation observation(peak);
    step.run();
    peak_bytes = peak.bytes();
  }

  TrainingStep<P> step;
  double peak_bytes = 0;
  std::vector<double> seconds = {};
};

template <typename P>
int compare(const Options& options, const Group& world) {
  Side<P> kept(options, 0, world);
  Side<P> recomputed(options, options.layers, world);
  std::vector<double> ratios;
  for (int round = 0; round < options.steps; ++round) {
    for (Side<P>* side : {&kept, &recomputed}) {
      side->seconds.push_back(slowest_seconds(world, [&] { side->step.run(); }));
    }
    ratios.push_back(recomputed.seconds.back() / kept.seconds.back());
  }
  if (world.rank() != 0) return 0;
  const auto mib = [](double bytes) { return bytes / (1 << 20); };
  const auto print = [&](const char* name, const Side<P>& side) {
    fmt::print("{:10} {:8.1f} ms, kept for the backward pass {:8.1f} MiB, peak {:8.1f} MiB\n", name, median(side.seconds) * 1e3,
               mib(static_cast<double>(side.step.kept_bytes())), mib(side.peak_bytes));
  };
  print("kept", kept);
  print("recomputed", recomputed);
  // What it takes at least: the input of each layer, what one layer keeps, and what is no block's: the output and the loss.
  const double input = static_cast<double>(options.batch * options.model.block * options.model.width) * sizeof(float);
  const auto layers = static_cast<double>(options.model.layers);
  const double one_layer =
      (static_cast<double>(kept.step.kept_bytes()) - static_cast<double>(recomputed.step.kept_bytes())) / layers + input;
  const double floor = static_cast<double>(recomputed.step.kept_bytes()) + one_layer;
  fmt::print(
      "recomputed / kept: time {:.3f}, kept bytes {:.3f}, peak {:.3f}; inputs and one layer {:.1f} MiB, peak / this {:.3f}\n",
      median(ratios), static_cast<double>(recomputed.step.kept_bytes()) / static_cast<double>(kept.step.kept_bytes()),
      recomputed.peak_bytes / kept.peak_bytes, mib(floor), recomputed.peak_bytes / floor);
  write_json(options.json, {{"time_ratio", median(ratios)},
                            {"kept_peak_bytes", kept.peak_bytes},
                            {"recomputed_peak_bytes", recomputed.peak_bytes},
                            {"inputs_and_one_layer_bytes", floor},
                            {"ranks", world.size()}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A step that computes blocks again beside one that keeps them; the defaults are the 10.9M model.");
  command.options_of(options.model);
  command.option("--batch", options.batch, "sequences of one rank");
  command.option("--recompute-layers", options.layers, "blocks that are computed again; not given: all");
  command.option("--steps", options.steps, "timed rounds");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--precision", options.precision, "fp32, or bf16: mixed", {"fp32", "bf16"});
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads}, [&](const Group& world) {
    return options.precision == "bf16" ? compare<MixedBfloat16>(options, world) : compare<Float32>(options, world);
  });
}
