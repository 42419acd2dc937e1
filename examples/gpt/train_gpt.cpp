// Trains a GPT on text, on one rank or on many: see train_gpt --help and docs/train_gpt.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const trireme::Group& world) {
    with_precision(options.training.precision, [&]<typename P>(P) { Trainer<P>(options, world).run(); });
  });
}
