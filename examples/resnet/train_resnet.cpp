// Trains a classifier of images, on one rank or on many: see train_resnet --help and docs/train_resnet.md.

#include "trainer.hpp"
#include "training/program.hpp"
#include "trireme/device/with_device.hpp"

using namespace trireme;

namespace {

template <typename P, typename D>
void train(const Options& options, const Group& world) {
  if (options.model == "cnn") {
    Trainer<models::Cnn<P, D>>(options, world).run();
  } else {
    Trainer<models::ResNet<P, D>>(options, world).run();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const Group& world) {
    with_precision(options.training.precision, [&]<typename P>(P) {
      device::with_device(options.training.device, [&]<typename D>(D) { train<P, D>(options, world); });
    });
  });
}
