// Trains a GPT on text, on one rank or on many: see train_gpt --help and docs/train_gpt.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const trireme::Group& world) {
    if (options.precision == "bf16") {
      Trainer<trireme::MixedBfloat16>(options, world).run();
    } else if (options.precision == "fp16") {
      Trainer<trireme::MixedFloat16>(options, world).run();
    } else {
      Trainer<trireme::Float32>(options, world).run();
    }
  });
}
