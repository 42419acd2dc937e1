#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "trireme/core/error.hpp"

using trireme::require;

namespace {

void add_model(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->group("Model")->capture_default_str();
  };
  add("--model", options.model, "mlp: linear layers; dcgan: convolutions and batch norm")
      ->check(CLI::IsMember({"mlp", "dcgan"}));
  add("--latent", options.latent, "random numbers from which an image is made");
  app.add_option("--features", options.features,
                 "width of the hidden layers [mlp: 256], or channels next to the image [dcgan: 64]")
      ->group("Model");
}

void add_samples(CLI::App& app, Options& options) {
  app.add_option("--samples", options.samples,
                 "write 64 images of the generator to this file (PNG), always of the same latents")
      ->group("Run");
  app.add_option("--sample-interval", options.sample_interval,
                 "steps between --samples; 0: only before the first and after the last")
      ->group("Run")
      ->capture_default_str();
}

void check(const Options& options) {
  require(options.latent > 0 && options.features >= 0 && options.sample_interval >= 0,
          "--latent is above 0, --features too where it is given, --sample-interval is 0 or more");
  require(options.training.fixed_bits == 0, "--fixed-bits is not for GANs: leave it out");
  require(options.training.micro_batch_size == 0,
          "--micro-batch-size is not for GANs, whose generator learns from the discriminator after its step: leave it out");
  require(options.training.bucket_profile.empty(),
          "--bucket-profile holds the buckets of one model, and a GAN is two: leave it out");
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  options.training.batch_size = 64;
  options.training.optimizer = "adam";
  options.training.learning_rate = 2e-4;
  options.training.min_learning_rate_ratio = 1;
  options.training.warmup = 0;
  options.training.beta1 = 0.5;
  options.training.beta2 = 0.999;
  options.training.weight_decay = 0;
  options.training.clip = 0;
  CLI::App app{"Trains a GAN on images, on one rank or on many: mpirun -n N train_gan --data FOLDER"};
  TrainingParser parser(app, "train_gan", options.training);
  parser.add_images();
  parser.add_precision();
  parser.add_device();
  add_model(app, options);
  add_samples(app, options);
  if (parser.parse(argc, argv, help)) check(options);
  return options;
}

trireme::optim::Settings Options::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  trireme::optim::Settings settings = training.settings();
  settings.insert(settings.end(), {{"model", model},
                                   {"latent", text(latent)},
                                   {"features", text(features)},
                                   {"samples", samples},
                                   {"sample_interval", text(sample_interval)}});
  return settings;
}
