// Trains a classifier of images, on one rank or on many: see train_resnet --help and docs/train_resnet.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const trireme::Group& world) {
    if (options.model == "cnn") {
      Trainer<trireme::models::Cnn<trireme::Float32>>(options, world).run();
    } else {
      Trainer<trireme::models::ResNet<trireme::Float32>>(options, world).run();
    }
  });
}
