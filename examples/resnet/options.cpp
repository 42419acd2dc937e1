#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "trireme/core/error.hpp"

using trireme::require;

namespace {

void add_model(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "cnn: two convolutions; resnet18, resnet50: for small images")
      ->group("Model")
      ->check(CLI::IsMember({"cnn", "resnet18", "resnet50"}))
      ->capture_default_str();
  app.add_option("--label-smoothing", options.label_smoothing, "share of a target that is spread over all classes")
      ->group("Training")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training images, in place of --steps")
      ->group("Training")
      ->excludes("--steps");
}

void add_augmentation(CLI::App& app, Options& options) {
  trireme::data::Augmentation& augmentation = options.augmentation;
  const auto add = [&](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text)->group("Augmentation")->capture_default_str();
  };
  add("--crop-padding", augmentation.crop_padding, "pixels by which an image is padded before a part of its size is taken");
  app.add_flag("--flip", augmentation.horizontal_flip, "each image is mirrored with probability 1/2")->group("Augmentation");
  add("--rotation", augmentation.rotation, "the largest turn, in degrees");
  add("--brightness", augmentation.brightness, "the largest change, as a share");
  add("--contrast", augmentation.contrast, "the largest change, as a share");
  add("--saturation", augmentation.saturation, "the largest change, as a share");
}

void check(const Options& options) {
  require(options.epochs >= 0 && std::isfinite(options.epochs), "--epochs {} is not a number of 0 or more", options.epochs);
  require(options.label_smoothing >= 0 && options.label_smoothing < 1, "--label-smoothing {} does not lie in [0, 1)",
          options.label_smoothing);
  const trireme::data::Augmentation& augmentation = options.augmentation;
  require(augmentation.crop_padding >= 0 && augmentation.rotation >= 0 && augmentation.brightness >= 0 &&
              augmentation.contrast >= 0 && augmentation.saturation >= 0,
          "--crop-padding, --rotation, --brightness, --contrast and --saturation are 0 or more");
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  options.training.batch_size = 128;
  options.training.optimizer = "sgd";
  options.training.learning_rate = 0.1;
  options.training.min_learning_rate_ratio = 0;
  options.training.beta1 = 0.9;
  options.training.weight_decay = 5e-4;
  options.training.clip = 0;
  CLI::App app{"Trains a classifier of images, on one rank or on many: mpirun -n N train_resnet --data FOLDER"};
  TrainingParser parser(app, "train_resnet", options.training);
  parser.add_validation();
  parser.add_images();
  app.add_option("--test-data", options.test_data, "the same for the test images [those in the folder of --data]");
  parser.add_precision();
  parser.add_device();
  add_model(app, options);
  add_augmentation(app, options);
  if (parser.parse(argc, argv, help)) check(options);
  return options;
}

trireme::optim::Settings Options::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  trireme::optim::Settings settings = training.settings();
  settings.insert(settings.end(), {{"model", model},
                                   {"epochs", text(epochs)},
                                   {"label_smoothing", text(label_smoothing)},
                                   {"crop_padding", text(augmentation.crop_padding)},
                                   {"flip", text(augmentation.horizontal_flip)},
                                   {"rotation", text(augmentation.rotation)},
                                   {"brightness", text(augmentation.brightness)},
                                   {"contrast", text(augmentation.contrast)},
                                   {"saturation", text(augmentation.saturation)}});
  return settings;
}
