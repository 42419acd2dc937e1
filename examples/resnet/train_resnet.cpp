// Trains a classifier of images, on one rank or on many: see train_resnet --help and docs/train_resnet.md.

#include "train.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using trainer::Differs;

void ResNetRecipe::add_to(trainer::CommandLine& line) {
  optimizer = "sgd";
  optimizer_options.learning_rate = 0.1;
  optimizer_options.weight_decay = 5e-4;
  optimizer_options.beta1 = 0.9;
  Recipe::add_to(line, "a folder with MNIST's files, or a file or folder in CIFAR-10's binary format (data_batch_*.bin)");
  add_validation(line);
  line.add("test_data", test_data, "the same for the test images; not given: those in the folder of --data");
  line.set_differs("test_data", Differs::allowed);
  add_precision(line);
  line.add("model", model, {"cnn", "resnet18", "resnet50"}, "cnn: two convolutions; resnet18, resnet50: for small images");
  line.add("label_smoothing", label_smoothing, "share of a target that is spread over all classes");
  line.set_differs("label_smoothing", Differs::told);
  line.set_group("Augmentation");
  line.add("crop_padding", augmentation.crop_padding, "pixels by which an image is padded before a part of its size is taken");
  line.add("flip", augmentation.horizontal_flip, "each image is mirrored with probability 1/2");
  line.add("rotation", augmentation.rotation, "the largest turn, in degrees");
  line.add("brightness", augmentation.brightness, "the largest change, as a share");
  line.add("contrast", augmentation.contrast, "the largest change, as a share");
  line.add("saturation", augmentation.saturation, "the largest change, as a share");
  line.add("hue", augmentation.hue, "the largest change, in turns of the circle of colours, up to 0.5");
  line.after_parsing([this] {
    require(!data.empty(), "--data is missing: name a folder of images");
    require(label_smoothing >= 0 && label_smoothing < 1, "--label-smoothing {} does not lie in [0, 1)", label_smoothing);
    require(augmentation.crop_padding >= 0 && augmentation.rotation >= 0 && augmentation.brightness >= 0 &&
                augmentation.contrast >= 0 && augmentation.saturation >= 0 && augmentation.hue >= 0,
            "--crop-padding, --rotation, --brightness, --contrast, --saturation and --hue are 0 or more");
  });
}

int main(int argc, char** argv) {
  trainer::CommandLine line("Trains a classifier of images, on one rank or on many: mpirun -n N train_resnet --data FOLDER");
  ResNetRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 128, .warmup = 20, .clip_norm = 0},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
