#pragma once

#include <cstdint>
#include <string>

#include "training/options.hpp"

// What train_lstm can be told; see train_lstm --help.
struct Options {
  TrainingOptions training;

  std::string tokenizer = "character";
  std::int64_t vocabulary = 10'000;
  std::int64_t embedding = 256;
  std::int64_t hidden = 512;
  int layers = 2;
  double dropout = 0;
  std::int64_t block = 64;

  // What all ranks must share.
  trireme::optim::Settings settings() const;
};

// Reads the command line and --config. Throws trireme::Error for what it can't use; `help` gets the text of --help when that
// was asked for.
Options parse_options(int argc, char** argv, std::string& help);
