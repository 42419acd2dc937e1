#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

// Which parts of the process a run uses. The default is none, for a run inside another program.
struct ProcessUse {
  // If the run saves checkpoints, the first SIGINT, SIGTERM, SIGUSR1 or SIGHUP, or a SIGPIPE from another process, makes the
  // run save and stop after the step. A second SIGINT or SIGTERM ends the process immediately. Output to a closed pipe is lost
  // and does not end the process. A signal that was ignored when the process began stays ignored.
  bool signals = false;
  bool terminal = false;         // progress on standard output, see monitor::terminal
  bool standard_output = false;  // the run prints its lines there; otherwise they go to the log
};

// What happens if a setting of a resumed run differs from its value in the checkpoint.
enum class Differs : std::uint8_t {
  refused,  // an Error names both values
  told,     // a printed line names both values
  allowed,
};

// Where the models of a program compute.
struct DeviceOptions {
  std::string device = "cpu";             // or "cuda": each rank on an NVIDIA GPU
  StartUp start_up = StartUp::automatic;  // with "cuda": the launcher of the processes
  double memory_fraction = 1;             // the share of a GPU's memory that its rank may use
  bool allow_tf32 = false;                // products of float32 round their operands to TF32
};

// What a batch size that changes during the run does to the learning rate. A step of n samples multiplies its rate by
// n / Options::batch_size, or by the square root of this.
enum class RateScaling : std::uint8_t { none, linear, square_root };

struct Options {
  Amount until = Epochs{1};      // how long the run lasts; Seconds count the time in the run's loop, over all starts
  std::int64_t batch_size = 32;  // samples of a step, over all ranks
  // Other sizes for later steps, see data::BatchOptions: {{1000, 64}, {5000, 128}}.
  data::BatchSizes batch_size_from_step = {};
  std::int64_t micro_batch_size = 0;  // samples of a micro-batch of a rank; 0: all of the rank's samples
  std::uint64_t seed = 1;             // of initial values, the order of the data, and the random numbers of steps

  // The rate of each step. If empty, the rate rises over `warmup` steps to the base rate, which is `base_learning_rate` or, if
  // that is not given, the optimizer's own rate. Then it falls by half a cosine, to `minimum_learning_rate_ratio` times the
  // base rate at the end of the run. If `until` is Seconds, the end is not known and the rate stays constant after `warmup`.
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

  // If true, a run whose data differ from the data of its checkpoint resumes and prints a line about the difference; if false,
  // the run throws Error.
  bool allow_other_data = false;

  MeshOptions mesh = {};           // the sizes of the data, pipeline, tensor and expert axes
  bool sequence_parallel = false;  // see parallel::ModelContextOptions
  int chunks = 1;                  // see parallel::ModelContextOptions::num_chunks
  int recompute_layers = 0;        // see parallel::ModelContextOptions
  parallel::ParallelOptions parallel = {};

  // The file to which rank 0 writes the metrics after each step: CSV if its name ends in .csv, else JSON lines. If writing
  // fails, the run prints one line about it and continues without these metrics.
  std::string metrics = {};
  ProcessUse process = {};

  // `command` repeats the run. `configuration` holds the run's options as a file for --config. They are written to runs.jsonl
  // and options.toml in the folder of the checkpoints. launch() sets both.
  std::string command = {};
  std::string configuration = {};
};

}  // namespace trainer
}  // namespace trireme
