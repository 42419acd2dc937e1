// One training step of a ResNet-18 on images of CIFAR-10's shape against its floor (its convolutions alone through oneDNN), and
// the parts of the step that convolutions and batch norms take. All in the same process.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <trireme/trireme.hpp>

#include "convolution_floor.hpp"
#include "layer_passes.hpp"
#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t batch = 32;  // of one rank
  int steps = 5;
  int threads = 1;
  bool local_batch_norm = false;
  bool no_floor = false;
  std::string precision = "fp32";
  std::string json;
  std::string turns;
};

// A training step on random images, different on every rank.
template <typename P>
class TrainingStep {
 public:
  TrainingStep(const Options& options, const Group& world)
      : model_(models::ResNetOptions::resnet18()),
        data_parallel_((model_.initialize(), model_), ProcessMesh(world),
                       {.synchronize_batch_norm = !options.local_batch_norm}),
        optimizer_(model_, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 5e-4}),
        images_({options.batch, 32, 32, 3}),
        labels_({options.batch}) {
    const auto first = static_cast<std::uint64_t>(world.rank() * images_.numel());
    for (std::int64_t index = 0; index < images_.numel(); ++index) {
      const auto number = first + static_cast<std::uint64_t>(index);
      images_.data()[index] = static_cast<float>(number * 7919 % 1021) / 510.5F - 1;
    }
    for (std::int64_t index = 0; index < labels_.numel(); ++index) {
      labels_.data()[index] = static_cast<std::int32_t>((world.rank() * labels_.numel() + index) * 7 % 10);
    }
  }

  void run() {
    parallel::Step step = data_parallel_.begin(next_step_++);
    step.backward(0, [&] { return model_.loss(images_, labels_); });
    step.update(optimizer_);
  }

 private:
  models::ResNet<P> model_;
  parallel::DataParallel data_parallel_;
  optim::Sgd<P> optimizer_;
  Tensor<float> images_;
  Tensor<std::int32_t> labels_;
  std::int64_t next_step_ = 0;
};

// The parts that are timed beside the step.
template <typename T>
struct Parts {
  Parts(const std::vector<Layer>& layers, std::int64_t batch)
      : floor(ConvolutionFloor::make(layers, batch, dtype_of<T>)), passes(layers, batch) {
    if (floor) floor->run();
  }

  std::unique_ptr<ConvolutionFloor> floor;  // null: there is none on this processor
  LayerPasses<T> passes;
  std::vector<double> floor_seconds = {};
  std::vector<double> convolution_seconds = {};
  std::vector<double> batch_norm_seconds = {};
};

template <typename P>
int benchmark(const Options& options, const Group& world) {
  using T = typename P::Compute;
  const std::vector<Layer> layers = resnet18_layers();
  const double operations = convolution_operations(layers, options.batch);
  TrainingStep<P> step(options, world);
  for (int warm_up = 0; warm_up < 2; ++warm_up) step.run();
  const double peak_rss = peak_rss_bytes(world);  // before the floor takes its operands

  std::optional<Parts<T>> parts;
  if (!options.turns.empty()) {
    return take_turns(world.rank(), options.turns, [&](const std::string& name) -> std::optional<double> {
      if (name == "step") return slowest_seconds(world, [&] { step.run(); });
      if (name == "memory") return peak_rss;
      if (name == "peak") return operations / (measure_fma_peak() * options.threads);
      if (name != "floor") refuse_turn(name);
      if (!parts) parts.emplace(layers, options.batch);
      if (!parts->floor) return std::nullopt;
      return slowest_seconds(world, [&] { parts->floor->run(); });
    });
  }
  if (!options.no_floor) parts.emplace(layers, options.batch);
  std::vector<double> step_seconds;
  for (int round = 0; round < options.steps; ++round) {
    step_seconds.push_back(slowest_seconds(world, [&] { step.run(); }));
    if (!parts) continue;
    if (parts->floor) parts->floor_seconds.push_back(slowest_seconds(world, [&] { parts->floor->run(); }));
    parts->convolution_seconds.push_back(slowest_seconds(world, [&] { parts->passes.convolutions(); }));
    parts->batch_norm_seconds.push_back(slowest_seconds(world, [&] { parts->passes.batch_norms(); }));
  }
  if (world.rank() != 0) return 0;

  const double step_time = median(step_seconds);
  const double images_per_second = static_cast<double>(world.size() * options.batch) / step_time;
  nlohmann::ordered_json result{{"step_seconds", step_time},        {"images_per_second", images_per_second},
                                {"peak_rss_bytes", peak_rss},       {"ranks", world.size()},
                                {"threads", options.threads},       {"batch", options.batch},
                                {"precision", name_of(dtype_of<T>)}};
  fmt::print("step          {:8.1f} ms  {:6.1f} GFLOP/s a rank\n", step_time * 1e3, operations / step_time * 1e-9);
  if (parts) {
    const double convolutions = median(parts->convolution_seconds);
    const double batch_norms = median(parts->batch_norm_seconds);
    const double rest = step_time - convolutions - batch_norms;
    const auto print = [&](const char* name, double seconds) {
      fmt::print("{:13} {:8.1f} ms  {:5.1f} % of the step\n", name, seconds * 1e3, 100 * seconds / step_time);
    };
    print("convolutions", convolutions);
    print("batch norms", batch_norms);
    print("rest", rest);
    result["convolution_seconds"] = convolutions;
    result["batch_norm_seconds"] = batch_norms;
    if (parts->floor) {
      const double floor = median(parts->floor_seconds);
      fmt::print("floor         {:8.1f} ms  {:6.1f} GFLOP/s a rank, {:.0f} % of the float32 FMA peak\n", floor * 1e3,
                 operations / floor * 1e-9, 100 * operations / floor / (measure_fma_peak() * options.threads));
      fmt::print("step / floor {:.3f}\n", step_time / floor);
      result["floor_seconds"] = floor;
      result["ratio"] = step_time / floor;
    } else {
      fmt::print("no floor: this processor has no products of {}\n", name_of(dtype_of<T>));
    }
  }
  fmt::print("{:.1f} images/s on {} ranks x {} threads, batch {} a rank, peak memory {:.0f} MiB a rank\n", images_per_second,
             world.size(), options.threads, options.batch, peak_rss / (1 << 20));
  write_json(options.json, result);
  return 0;
}

int benchmark_in(const Options& options, const Group& world) {
  if (options.precision == "bf16") return benchmark<MixedBfloat16>(options, world);
  if (options.precision == "fp16") return benchmark<MixedFloat16>(options, world);
  return benchmark<Float32>(options, world);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A ResNet-18 training step on images of CIFAR-10's shape against its convolutions alone.");
  command.option("--batch", options.batch, "images of one rank");
  command.option("--steps", options.steps, "timed rounds");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--precision", options.precision, "fp32, or mixed: bf16, fp16; the floor of fp16 is of float32 convolutions",
                 {"fp32", "bf16", "fp16"});
  command.flag("--local-batch-norm", options.local_batch_norm, "each rank normalises by its own rows, as PyTorch does");
  command.flag("--no-floor", options.no_floor, "time the step alone");
  command.option("--json", options.json, "write the figures here");
  command.option("--turns", options.turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads},
                [&](const Group& world) { return benchmark_in(options, world); });
}
