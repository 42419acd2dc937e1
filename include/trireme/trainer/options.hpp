#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/units.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/parallel/parallel_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// What a run takes of its process. A program that trains inside another one leaves it all alone, as it is at first.
struct ProcessUse {
  // With checkpoints the first SIGINT, SIGTERM, SIGUSR1 or SIGHUP saves and stops after the step, and so does a SIGPIPE that
  // another process sends; a second SIGINT or SIGTERM ends the process at once. What is written to a pipe that nobody reads is
  // lost. A signal that was ignored when the process began stays ignored.
  bool signals = false;
  bool terminal = false;         // progress on standard output, see monitor::terminal
  bool standard_output = false;  // what the run has to tell, which otherwise goes to the log
};

// What happens where a setting is another one than in the checkpoint that a run goes on from.
enum class Differs : std::uint8_t {
  refused,  // an Error names both values
  told,     // a line does
  allowed,
};

// Where the models of a program compute.
struct DeviceOptions {
  std::string device = "cpu";             // or "cuda": each rank on an NVIDIA GPU
  StartUp start_up = StartUp::automatic;  // with "cuda": what started the processes
  double memory_fraction = 1;             // of its GPU's memory that a rank may take
  bool allow_tf32 = false;                // products of float32 round their operands to TF32
};

struct Options {
  Amount until = Epochs{1};           // how long the run lasts; Seconds are those of its loop, over all starts
  std::int64_t batch_size = 32;       // samples of a step, all ranks together
  std::int64_t micro_batch_size = 0;  // samples of one rank that are computed at once; 0: all of its share
  std::uint64_t seed = 1;             // of first values, of the order of the data, and of the random numbers of steps

  // Of each step. Empty: the optimizer's own rate, or `base_learning_rate` in its place, rises over `warmup` steps, then falls
  // by half a cosine to `minimum_learning_rate_ratio` of it at the run's end; where that is not known, with Seconds, it stays.
  optim::LearningRate learning_rate = {};
  std::optional<double> base_learning_rate = {};  // above 0; of a run that trains one model
  std::int64_t warmup = 0;                        // steps; more than the run has are as many as it has
  double minimum_learning_rate_ratio = 0;

  double clip_norm = 1;   // largest L2 norm of all gradients together; 0: no limit
  double clip_value = 0;  // largest magnitude of an element of the gradients after that; 0: no limit
  optim::NonFinitePolicy non_finite = optim::NonFinitePolicy::stop;
  int max_skipped = 10;  // steps in a row

  checkpoint::CheckpointOptions checkpoints = {};  // without a directory there are none
  Amount checkpoint_every = Seconds{600};          // and at the end
  // Where to go on: "auto", the newest checkpoint if there is one; a step; or "none". The environment variable TRIREME_RESUME
  // has precedence.
  std::string resume = "auto";

  // Whether a run goes on from a checkpoint of other data, which is told in a line; otherwise that is an Error.
  bool allow_other_data = false;

  MeshOptions mesh = {};           // who computes what: ranks of the data, the pipeline and the tensor axis
  bool sequence_parallel = false;  // see parallel::ModelContextOptions
  int chunks = 1;                  // likewise
  parallel::ParallelOptions parallel = {};

  // Rank 0 writes them to this file after each step: CSV where it ends in .csv, else JSON lines. What can't be written is told
  // once, and lost; the run goes on.
  std::string metrics = {};
  ProcessUse process = {};

  // For the record of the run in the folder of its checkpoints, runs.jsonl and options.toml: the command that repeats it, and
  // its options as a file for --config. launch() knows both.
  std::string command = {};
  std::string configuration = {};
};

}  // namespace trainer
}  // namespace trireme
