#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/comm/base/group.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/precision/policy.hpp"

namespace CLI {
class App;
}

// After how many steps or seconds a checkpoint is saved; 0: not for that.
struct CheckpointInterval {
  std::int64_t steps = 0;
  std::int64_t seconds = 0;
};

// What every trainer can be told beside its model's options; see train_gpt --help.
struct TrainingOptions {
  std::string program;       // its name
  std::string data;          // a file or folder
  std::string data_content;  // what it holds, in words: data::content_of()

  std::int64_t batch_size = 16;       // of all ranks together
  std::int64_t micro_batch_size = 0;  // of one rank; 0: batch_size / ranks
  std::int64_t steps = 1000;
  std::string optimizer = "adamw";
  double learning_rate = 1e-3;
  double min_learning_rate_ratio = 0.1;
  std::int64_t warmup = 20;
  double weight_decay = 0.1;
  std::optional<double> beta1 = 0.9;  // nothing: the optimizer's own
  std::optional<double> beta2 = 0.95;
  double clip = 1.0;
  std::string non_finite = "stop";
  int max_skipped = 10;
  double bucket_mb = 25;  // 0: found by the first steps
  std::string bucket_profile;
  int check_replicas = 100;
  std::string optimizer_sharding = "auto";
  std::string pipeline_schedule;  // ParallelOptions::schedule
  int fixed_bits = 0;             // micro-batches of a step on all replicas; 0: off
  std::string compress = "none";
  std::int64_t compress_start = 0;
  std::int64_t compress_warmup = 0;
  std::string compress_when = "faster";
  std::string compress_between = "nodes";
  std::uint64_t seed = 1;

  double validation_fraction = 0.1;
  std::int64_t validation_interval = 100;
  std::int64_t sample = 0;

  std::string device = "cpu";
  double memory_fraction = 1;  // of a GPU's memory
  bool allow_tf32 = false;
  std::string precision = "fp32";
  int threads = 0;
  trireme::BackendKind backend = trireme::BackendKind::mpi;
  trireme::StartUp start_up = trireme::StartUp::automatic;
  int ranks = 1;

  std::string init;
  std::string save;
  std::string metrics;
  std::string flight_directory;

  std::string checkpoint_directory;
  CheckpointInterval checkpoint_interval = {.seconds = 600};
  int keep = 3;
  std::string resume = "auto";
  bool allow_other_data = false;

  // What all ranks must share.
  trireme::optim::Settings settings() const;

  // The sizes that follow from the number of ranks; an error where that does not divide the batch.
  void complete(const trireme::Group& world);

  trireme::parallel::ParallelOptions data_parallel() const;
  trireme::optim::NamedOptions optimizer_options() const;
  trireme::optim::UpdateOptions update_options() const;
  trireme::optim::LearningRate schedule() const;
};

// A trainer's options with the sizes that follow from the number of ranks.
template <typename Options>
Options completed(Options options, const trireme::Group& world) {
  options.training.complete(world);
  return options;
}

// Calls body(P()) with the policy that --precision names.
template <typename Body>
void with_precision(const std::string& precision, const Body& body) {
  if (precision == "bf16") {
    body(trireme::MixedBfloat16());
  } else if (precision == "fp16") {
    body(trireme::MixedFloat16());
  } else {
    body(trireme::Float32());
  }
}

// Adds the options to a command line, and reads them with those of the model.
class TrainingParser {
 public:
  TrainingParser(CLI::App& app, std::string program, TrainingOptions& options);

  void add_validation();
  void add_images();     // --data of images
  void add_text();       // what training on a text takes, validation included
  void add_precision();  // for models that know half types
  void add_device();     // for models that can train on GPUs

  // Throws trireme::Error for what can't be used. False when --help was asked for, whose text is in `help` then.
  bool parse(int argc, char** argv, std::string& help);

 private:
  void add_training();
  void add_run();
  void add_checkpoints();
  void add_compression();
  void check() const;

  CLI::App& app_;
  std::string program_;
  TrainingOptions& options_;
  std::string recipe_optimizer_;  // the program's own, which its betas are for
  std::string backend_ = "mpi";
  std::string start_up_ = "automatic";
  std::string bucket_mb_ = "25";
  std::string checkpoint_interval_ = "10min";
};
