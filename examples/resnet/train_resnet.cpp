// Trains a classifier of images, on one rank or on many: see train_resnet --help and docs/train_resnet.md.

#include "train.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

void ResNetRecipe::add_to(trainer::CommandLine& line) {
  optimizer = "sgd";
  optimizer_options.learning_rate = 0.1;
  optimizer_options.weight_decay = 5e-4;
  optimizer_options.beta1 = 0.9;
  Recipe::add_to(
      line,
      "a folder with MNIST's files, a file or folder in CIFAR-10's binary format (data_batch_*.bin), or tar archives as "
      "train-{000..099}.tar");
  add_validation(line);
  add_test_images(line);
  add_classes(line);
  add_image_size(line);
  add_archives(line);
  add_precision(line);
  line.add("model", model, {"cnn", "resnet18", "resnet50"}, "cnn: two convolutions; resnet18, resnet50: for small images");
  add_augmentation(line);
  line.after_parsing([this] { require(!data.empty(), "--data is missing: name a folder of images"); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line("Trains a classifier of images, on one rank or on many: mpirun -n N train_resnet --data FOLDER");
  ResNetRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 128, .warmup = 20, .clip_norm = 0},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
