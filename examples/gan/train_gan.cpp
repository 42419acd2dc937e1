// Trains a GAN on images, on one rank or on many: see train_gan --help and docs/train_gan.md.

#include "trainer.hpp"
#include "training/program.hpp"

int main(int argc, char** argv) {
  return run_program(argc, argv, parse_options, [](const Options& options, const trireme::Group& world) {
    with_precision(options.training.precision, [&]<typename P>(P) {
      if (options.model == "mlp") {
        Trainer<MlpGan<P>>(options, world).run();
      } else {
        Trainer<DcGan<P>>(options, world).run();
      }
    });
  });
}
