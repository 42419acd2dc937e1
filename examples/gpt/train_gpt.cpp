// Trains a GPT on text, on one rank or on many: see train_gpt --help and docs/train_gpt.md.

#include "trainer.hpp"
#include "training/program.hpp"
#include "trireme/device/with_device.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const Group& world) {
    with_precision(options.training.precision, [&]<typename P>(P) {
      device::with_device(options.training.device, [&]<typename D>(D) { Trainer<P, D>(options, world).run(); });
    });
  });
}
