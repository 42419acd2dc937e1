// Trains an LSTM language model on text, on one rank or on many: see train_lstm --help and docs/train_lstm.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options,
                     [](const Options& options, const trireme::Group& world) { Trainer(options, world).run(); });
}
