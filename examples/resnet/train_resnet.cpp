// Trains a classifier of images, on one rank or on many: see train_resnet --help and docs/train_resnet.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const trireme::Group& world) {
    with_precision(options.training.precision, [&]<typename P>(P) {
      if (options.model == "cnn") {
        Trainer<trireme::models::Cnn<P>>(options, world).run();
      } else {
        Trainer<trireme::models::ResNet<P>>(options, world).run();
      }
    });
  });
}
