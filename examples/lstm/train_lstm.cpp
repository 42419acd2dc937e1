// Trains an LSTM language model on text, on one rank or on many: see train_lstm --help and docs/train_lstm.md.

#include "trainer.hpp"
#include "training/program.hpp"
#include "trireme/device/with_device.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const Group& world) {
    device::with_device(options.training.device, [&]<typename D>(D) { Trainer<D>(options, world).run(); });
  });
}
