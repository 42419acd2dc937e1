#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/units.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/parallel/parallel_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// What a run uses of its process: by default nothing, for a program that trains inside another one.
struct ProcessUse {
  // With checkpoints the first SIGINT, SIGTERM, SIGUSR1, SIGHUP, or SIGPIPE sent by another process, makes the run save and
  // stop after the step; a second SIGINT or SIGTERM ends the process at once. Output to a closed pipe is lost and does not end
  // the process. A signal that was ignored when the process began stays ignored.
  bool signals = false;
  bool terminal = false;         // progress on standard output, see monitor::terminal
  bool standard_output = false;  // the run prints its lines there; otherwise they go to the log
};

// What happens if a setting differs from that in the checkpoint from which a run resumes.
enum class Differs : std::uint8_t {
  refused,  // an Error names both values
  told,     // a printed line names both values
  allowed,
};

// Where the models of a program compute.
struct DeviceOptions {
  std::string device = "cpu";             // or "cuda": each rank on an NVIDIA GPU
  StartUp start_up = StartUp::automatic;  // with "cuda": what started the processes
  double memory_fraction = 1;             // the share of its GPU's memory that a rank may use
  bool allow_tf32 = false;                // products of float32 round their operands to TF32
};

// What a batch size that changes during the run does to the learning rate. A step of n samples multiplies its rate by
// n / Options::batch_size, or by the square root of this.
enum class RateScaling : std::uint8_t { none, linear, square_root };

struct Options {
  Amount until = Epochs{1};      // how long the run lasts; Seconds count the time in its loop, over all starts
  std::int64_t batch_size = 32;  // samples of a step, all ranks together
  // Other sizes for later steps, see data::BatchOptions: {{1000, 64}, {5000, 128}}.
  std::vector<data::BatchSizeFrom> batch_size_from_step = {};
  std::int64_t micro_batch_size = 0;  // samples that a rank computes at once; 0: all of its share
  std::uint64_t seed = 1;             // of initial values, the order of the data, and the random numbers of steps

  // The rate of each step. Empty: it rises over `warmup` steps to `base_learning_rate` (not given: the optimizer's own rate),
  // then falls by half a cosine to `minimum_learning_rate_ratio` times this rate at the end of the run. If `until` is Seconds,
  // the end is not known and the rate stays constant after `warmup`.
  optim::LearningRate learning_rate = {};
  std::optional<double> base_learning_rate = {};  // above 0; only if the run trains one model
  std::int64_t warmup = 0;                        // steps; at most as many as the run has
  double minimum_learning_rate_ratio = 0;
  RateScaling scale_learning_rate = RateScaling::none;  // with batch_size_from_step; also for a learning_rate of your own

  double clip_norm = 1;   // largest L2 norm of all gradients together; 0: no limit
  double clip_value = 0;  // largest magnitude of a gradient's element, clipped after clip_norm; 0: no limit
  optim::NonFinitePolicy non_finite = optim::NonFinitePolicy::stop;
  int max_skipped = 10;  // with NonFinitePolicy::skip: the most steps skipped in a row

  checkpoint::CheckpointOptions checkpoints = {};  // without a directory no checkpoints are saved
  Amount checkpoint_every = Seconds{600};          // a checkpoint is also saved at the end
  // The checkpoint to resume from: "auto" (the newest, if there is one), the number of a step, or "none". The environment
  // variable TRIREME_RESUME has precedence.
  std::string resume = "auto";

  // Lets a run resume from a checkpoint of a run on other data, and prints a line; if false, other data are an Error.
  bool allow_other_data = false;

  MeshOptions mesh = {};           // the sizes of the data, pipeline, tensor and expert axes
  bool sequence_parallel = false;  // see parallel::ModelContextOptions
  int chunks = 1;                  // see parallel::ModelContextOptions::num_chunks
  parallel::ParallelOptions parallel = {};

  // The file to which rank 0 writes the metrics after each step: CSV if its name ends in .csv, else JSON lines. If writing
  // fails, a line says so once and the run goes on without these metrics.
  std::string metrics = {};
  ProcessUse process = {};

  // The command that repeats the run, and its options as a file for --config. They are written to runs.jsonl and options.toml
  // in the folder of the checkpoints. launch() sets both.
  std::string command = {};
  std::string configuration = {};
};

}  // namespace trainer
}  // namespace trireme
