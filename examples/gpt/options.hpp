#pragma once

#include <cstdint>
#include <string>

#include "trireme/comm/launch.hpp"
#include "trireme/optim/optimizer.hpp"

// What train_gpt can be told; see train_gpt --help.
struct Options {
  std::string data;
  std::string tokenizer = "byte";
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t block = 256;

  std::int64_t batch_size = 16;       // of all ranks together
  std::int64_t micro_batch_size = 0;  // of one rank; 0: batch_size / ranks
  std::int64_t steps = 1000;
  double learning_rate = 1e-3;
  double min_learning_rate_ratio = 0.1;
  std::int64_t warmup = 20;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1.0;
  double dropout = 0;
  double bucket_mb = 25;  // 0: found by the first steps
  std::string optimizer_sharding = "auto";
  std::string reduction = "default";
  int virtual_shards = 0;
  std::string compress = "none";
  std::int64_t compress_start = 0;
  std::int64_t compress_warmup = 0;
  std::string compress_when = "faster";
  std::string compress_between = "nodes";
  std::uint64_t seed = 1;

  double validation_fraction = 0.1;
  std::int64_t validation_interval = 100;
  std::int64_t sample = 0;

  int threads = 0;
  trireme::BackendKind backend = trireme::BackendKind::mpi;
  int ranks = 1;

  std::string init;
  std::string save;
  std::string metrics;
  std::string flight_directory;

  // What all ranks must share.
  trireme::optim::Settings settings() const;
};

// Reads the command line and --config. Throws trireme::Error for what it can't use; `help` gets the text of --help when that
// was asked for.
Options parse_options(int argc, char** argv, std::string& help);
