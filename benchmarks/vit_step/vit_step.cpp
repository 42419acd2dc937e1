// One training step of a vision transformer on random images, different on every rank.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <trireme/trireme.hpp>

#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"

using namespace trireme;

namespace {

struct Options {
  models::VisionTransformerOptions model = models::VisionTransformerOptions::tiny();
  std::int64_t batch = 8;  // of one rank
  int steps = 5;
  int threads = 1;
  bool no_floor = false;
  std::string precision = "fp32";
  std::string json;
  std::string turns;
};

template <typename P>
class TrainingStep {
 public:
  TrainingStep(const Options& options, const Group& world)
      : model_(options.model),
        data_parallel_((model_.initialize(), model_), ProcessMesh(world)),
        optimizer_(model_, {.weight_decay = 0.05, .decay = optim::Decay::matrices}),
        images_({options.batch, options.model.image_size, options.model.image_size, options.model.channels}),
        labels_({options.batch}) {
    const auto first = static_cast<std::uint64_t>(world.rank() * images_.numel());
    for (std::int64_t index = 0; index < images_.numel(); ++index) {
      images_.data()[index] = static_cast<float>((first + static_cast<std::uint64_t>(index)) * 7919 % 1021) / 510.5F - 1;
    }
    for (std::int64_t index = 0; index < labels_.numel(); ++index) {
      labels_.data()[index] = static_cast<std::int32_t>((world.rank() * labels_.numel() + index) * 7 % options.model.classes);
    }
  }

  void run() {
    parallel::Step step = data_parallel_.begin(next_step_++);
    step.backward(0, [&] { return model_.loss(images_, labels_); });
    step.update(optimizer_, {.clip_norm = 1});
  }

 private:
  models::VisionTransformer<P> model_;
  parallel::DataParallel data_parallel_;
  optim::AdamW<P> optimizer_;
  Tensor<float> images_;
  Tensor<std::int32_t> labels_;
  std::int64_t next_step_ = 0;
};

// Operations of the matrix products of forward and backward; the patches need no gradient.
double operations_of(const Options& options) {
  const auto& model = options.model;
  const double patches = static_cast<double>((model.image_size / model.patch_size) * (model.image_size / model.patch_size));
  const double time = patches + 1, width = static_cast<double>(model.width), hidden = static_cast<double>(model.hidden);
  const double of_block = time * (4 * width * width + 2 * width * hidden) + 2 * time * time * width;
  const double pixels = static_cast<double>(model.patch_size * model.patch_size * model.channels);
  return 2 * static_cast<double>(options.batch) * (3 * model.layers * of_block + 2 * patches * pixels * width);
}

template <typename P>
int benchmark(const Options& options, const Group& world) {
  TrainingStep<P> step(options, world);
  for (int warm_up = 0; warm_up < 2; ++warm_up) step.run();
  const double peak_rss = peak_rss_bytes(world);
  const double operations = operations_of(options);
  if (!options.turns.empty()) {
    return take_turns(world.rank(), options.turns, [&](const std::string& name) -> std::optional<double> {
      if (name == "step") return slowest_seconds(world, [&] { step.run(); });
      if (name == "memory") return peak_rss;
      if (name != "peak") refuse_turn(name);
      return operations / (measure_fma_peak() * options.threads);
    });
  }
  std::vector<double> seconds;
  for (int round = 0; round < options.steps; ++round) seconds.push_back(slowest_seconds(world, [&] { step.run(); }));
  if (world.rank() != 0) return 0;
  const double step_time = median(seconds);
  const double images_per_second = static_cast<double>(world.size() * options.batch) / step_time;
  fmt::print("step {:8.1f} ms  {:6.1f} GFLOP/s a rank, {:.0f} % of the float32 FMA peak\n", step_time * 1e3,
             operations / step_time * 1e-9, 100 * operations / step_time / (measure_fma_peak() * options.threads));
  fmt::print("{:.1f} images/s on {} ranks x {} threads, batch {} a rank, peak memory {:.0f} MiB a rank\n", images_per_second,
             world.size(), options.threads, options.batch, peak_rss / (1 << 20));
  write_json(options.json, {{"step_seconds", step_time},
                            {"images_per_second", images_per_second},
                            {"peak_rss_bytes", peak_rss},
                            {"ranks", world.size()},
                            {"threads", options.threads},
                            {"batch", options.batch},
                            {"precision", name_of(dtype_of<typename P::Compute>)}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A vision transformer's training step; the defaults are a ViT-Ti/16 on images of 224 x 224.");
  command.option("--layers", options.model.layers, "blocks");
  command.option("--heads", options.model.heads, "of attention");
  command.option("--width", options.model.width, "of the residual stream");
  command.option("--hidden", options.model.hidden, "features of a block's MLP");
  command.option("--image-size", options.model.image_size, "pixels of an image's side");
  command.option("--patch-size", options.model.patch_size, "pixels of a patch's side");
  command.option("--batch", options.batch, "images of one rank");
  command.option("--steps", options.steps, "timed rounds");
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--precision", options.precision, "fp32, or mixed: bf16, fp16", {"fp32", "bf16", "fp16"});
  command.flag("--no-floor", options.no_floor, "as other benchmarks of a step have it; there is none here");
  command.option("--json", options.json, "write the figures here");
  command.option("--turns", options.turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads}, [&](const Group& world) {
    if (options.precision == "bf16") return benchmark<MixedBfloat16>(options, world);
    if (options.precision == "fp16") return benchmark<MixedFloat16>(options, world);
    return benchmark<Float32>(options, world);
  });
}
