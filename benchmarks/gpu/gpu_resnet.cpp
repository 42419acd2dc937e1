// Training steps of a ResNet-50 on images of ImageNet's shape on one GPU; benchmarks/peers/gpu_resnet.py is the same in
// PyTorch.

#include <nlohmann/json.hpp>
#include <trireme/trireme.hpp>

#include "gpu_measurement.hpp"
#include "measurement/command_line.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t batch = 256;
  std::int64_t size = 224;
  int steps = 20;
};

constexpr std::int64_t classes = 1000;

models::ResNetOptions resnet50() {
  auto options = models::ResNetOptions::resnet50();
  options.stem = models::ResNetOptions::Stem::imagenet;
  options.classes = classes;
  return options;
}

Tensor<float> made_up_images(const Options& options) {
  Tensor<float> images({options.batch, options.size, options.size, 3});
  for (std::int64_t i = 0; i < images.numel(); ++i) images.data()[i] = static_cast<float>(i * 7919 % 1021) / 510.5F - 1;
  return images;
}

Tensor<std::int32_t> made_up_labels(const Options& options) {
  Tensor<std::int32_t> labels({options.batch});
  for (std::int64_t i = 0; i < labels.numel(); ++i) labels.data()[i] = static_cast<std::int32_t>(i * 7 % classes);
  return labels;
}

nlohmann::ordered_json benchmark(const Options& options, const Group& world) {
  using P = MixedBfloat16;
  models::ResNet<P, Cuda> model(resnet50());
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::Sgd<P, Cuda> optimizer(model, {.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-4});
  const Tensor<float, Cuda> images = made_up_images(options).to<Cuda>();
  const auto body = [&](parallel::Step& step, const auto& place, const auto& labels) {
    step.backward(place.first_sample, [&] { return model.loss(images, labels); });
    step.update(optimizer);
  };
  const Tensor<std::int32_t> labels = made_up_labels(options);
  return measure_training({.begin = [&](bool recorded) { return steps_of(recorded, replicas, body, labels); },
                           .unit = "images",
                           .per_step = options.batch,
                           .steps = options.steps});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Training steps of a ResNet-50 on one GPU, in mixed bfloat16.");
  command.option("--batch", options.batch, "images");
  command.option("--size", options.size, "height and width of an image");
  command.option("--steps", options.steps, "timed steps");
  if (const auto code = command.parse(argc, argv)) return *code;
  return run_on_gpu([&](const Group& world) { return benchmark(options, world); });
}
