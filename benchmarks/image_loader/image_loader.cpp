// The time to load and augment a batch of images, beside forward and backward of a small convolutional network.

#include <fmt/format.h>
#include <omp.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct SmallCnn : nn::Module<Float32> {
  explicit SmallCnn(const data::ImageShape& shape)
      : conv1(*this, "conv1", {.in = shape.channels, .out = 16, .kernel = 3, .padding = 1}),
        conv2(*this, "conv2", {.in = 16, .out = 32, .kernel = 3, .padding = 1}),
        output(*this, "output", {.in = shape.height / 4 * (shape.width / 4) * 32, .out = 10}) {}

  Variable<float> forward(const Variable<float>& x) const {
    const auto first = max_pool2d(relu(conv1.forward(x)), {.kernel = 2});
    const auto second = max_pool2d(relu(conv2.forward(first)), {.kernel = 2});
    return output.forward(reshape(second, {x.shape()[0], second.shape().numel() / x.shape()[0]}));
  }

  nn::Conv2d<Float32> conv1;
  nn::Conv2d<Float32> conv2;
  nn::Linear<Float32> output;
};

data::ImageDataset random_images(const data::ImageShape& shape) {
  constexpr std::int64_t count = 4096;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * shape.numel()));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(philox(1, 0, i)[0]);
  return {shape, std::move(pixels), std::vector<std::int32_t>(count, 3), 10};
}

struct Case {
  const char* name;
  data::Augmentation augmentation;
};

nlohmann::json measure(const char* name, const data::ImageShape& shape, std::int64_t batch_size, int steps) {
  const std::vector<Case> cases = {
      {"as they are", {}},
      {"crop, flip", {.crop_padding = 4, .horizontal_flip = true}},
      {"crop, flip, rotation", {.crop_padding = 4, .horizontal_flip = true, .rotation = 15}},
      {"crop, flip, colours",
       {.crop_padding = 4, .horizontal_flip = true, .brightness = 0.2, .contrast = 0.2, .saturation = 0.2}},
      {"crop, flip, colours, hue",
       {.crop_padding = 4, .horizontal_flip = true, .brightness = 0.2, .contrast = 0.2, .saturation = 0.2, .hue = 0.1}},
      {"resized crop, flip", {.random_resized_crop = data::RandomResizedCrop{}, .horizontal_flip = true}},
      {"crop, flip, RandAugment", {.crop_padding = 4, .horizontal_flip = true, .rand_augment = data::RandAugment{}}},
      {"crop, flip, erasing", {.crop_padding = 4, .horizontal_flip = true, .random_erasing = data::RandomErasing{}}},
      {"crop, flip, Mixup", {.crop_padding = 4, .horizontal_flip = true, .mixup_alpha = 1}},
      {"crop, flip, CutMix", {.crop_padding = 4, .horizontal_flip = true, .cutmix_alpha = 1}},
  };
  const data::ImageDataset dataset = random_images(shape);
  const data::Normalization normalization = data::normalization_of(dataset);
  const data::BatchOptions batch_options{.batch_size = batch_size};
  std::vector<data::ImageLoader> loaders;
  for (const Case& one : cases) {
    loaders.emplace_back(
        dataset,
        data::ImageLoaderOptions{.batch = batch_options, .normalization = normalization, .augmentation = one.augmentation});
  }
  SmallCnn model(shape);
  model.initialize({.seed = 1});
  std::vector<double> of_step;
  std::vector<std::vector<double>> of_load(cases.size());
  for (int step = 0; step <= steps; ++step) {  // in turn, so that all see the same machine
    data::ImageBatch batch;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const double seconds = seconds_of([&] { batch = loaders[i].load(step); });
      if (step > 0) of_load[i].push_back(seconds);
    }
    const double seconds = seconds_of([&] {
      Tape tape;
      cross_entropy(model.forward(batch.images), batch.labels).backward();
      model.store().clear_gradients();
    });
    if (step > 0) of_step.push_back(seconds);
  }
  const double step_seconds = median(of_step);
  fmt::print("{}, batch {}: forward and backward of the small network {:.2f} ms\n", name, batch_size, 1e3 * step_seconds);
  nlohmann::json figures = {{"images", name}, {"batch", batch_size}, {"step_seconds", step_seconds}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const double seconds = median(of_load[i]);
    const double values = static_cast<double>(batch_size * shape.numel());
    fmt::print("  {:<24} {:8.3f} ms  {:6.2f} ns/value  {:5.1f} % of them\n", cases[i].name, 1e3 * seconds,
               1e9 * seconds / values, 100 * seconds / step_seconds);
    figures["load_seconds"][cases[i].name] = seconds;
  }
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine command("Measures loading and augmentation of images beside forward and backward of a small network");
  std::int64_t batch_size = 64;
  int threads = 1;
  int steps = 51;
  std::string json;
  command.option("--batch", batch_size, "images");
  command.option("--threads", threads, "OpenMP threads");
  command.option("--steps", steps, "measured, after one that is not");
  command.option("--json", json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);

  fmt::print("{} thread(s), medians of {} steps\n", threads, steps);
  const auto mnist = measure("28 x 28 grey", {.height = 28, .width = 28, .channels = 1}, batch_size, steps);
  const auto cifar = measure("32 x 32 colour", {.height = 32, .width = 32, .channels = 3}, batch_size, steps);
  write_json(json, nlohmann::ordered_json::array({mnist, cifar}));
}
