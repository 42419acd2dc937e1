#pragma once

#include <cstdint>
#include <string>

#include "training/options.hpp"
#include "trireme/data/augmentation.hpp"

// What train_resnet can be told; see train_resnet --help.
struct Options {
  TrainingOptions training;

  std::string test_data;
  std::string model = "resnet18";
  double epochs = 0;  // 0: training.steps
  double label_smoothing = 0;
  trireme::data::Augmentation augmentation = {};

  // What all ranks must share.
  trireme::optim::Settings settings() const;
};

// Reads the command line and --config. Throws trireme::Error for what it can't use; `help` gets the text of --help when that
// was asked for.
Options parse_options(int argc, char** argv, std::string& help);
