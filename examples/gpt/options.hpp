#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/options.hpp"

// What train_gpt can be told; see train_gpt --help.
struct Options {
  TrainingOptions training;

  std::string tokenizer = "byte";
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t block = 256;
  double dropout = 0;
  std::string fp8 = "none";

  int data_parallel = 0;  // 0: what is left of the ranks
  int pipeline_parallel = 1;
  std::string schedule = "1f1b";
  int chunks = 1;
  std::string layer_costs = "equal";
  int tensor_parallel = 1;
  bool sequence_parallel = false;

  // By which layers are divided into stages; empty where --layer-costs is no list of numbers.
  std::vector<double> given_layer_costs() const;

  // What all ranks must share.
  trireme::optim::Settings settings() const;
};

// Reads the command line and --config. Throws trireme::Error for what it can't use; `help` gets the text of --help when that
// was asked for.
Options parse_options(int argc, char** argv, std::string& help);
