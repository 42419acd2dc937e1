#pragma once

#include <cstdint>
#include <string>

#include "training/options.hpp"

// What train_gan can be told; see train_gan --help.
struct Options {
  TrainingOptions training;

  std::string model = "dcgan";
  std::int64_t latent = 64;
  std::int64_t features = 0;  // 0: the model's own
  std::string samples;        // a PNG file
  std::int64_t sample_interval = 100;

  // What all ranks must share.
  trireme::optim::Settings settings() const;
};

// Reads the command line and --config. Throws trireme::Error for what it can't use; `help` gets the text of --help when that
// was asked for.
Options parse_options(int argc, char** argv, std::string& help);
