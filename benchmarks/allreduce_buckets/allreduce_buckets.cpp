// How large should gradient buckets be on this machine or cluster? Sweeps bucket sizes over the gradients of a model, alone and
// beside a simulated backward pass, compares with MPI_Allreduce, and recommends a setting.
//   mpirun -n 2 allreduce_buckets [--model gpt2] [--svg buckets.svg]

#include <fmt/format.h>

#include "data_parallel_ways.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "report.hpp"
#include "sweep.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace {

struct Options {
  SweepOptions sweep{.bucket_mib = {1, 2, 4, 8, 16, 25, 64, 128, 256, 0}};
  ReportOptions report;
  std::int64_t parameters = 0;
  double backward_ms = -1;
  bool tuned = false;
  bool ready_order = false;
  std::string profile;
};

int run(const trireme::Group& world, Options options) {
  if (world.size() == 1) {
    fmt::print(stderr,
               "allreduce_buckets: there is nothing to reduce with one rank; start it by mpirun -n N, or under Slurm by "
               "srun --mpi=pmix -n N\n");
    return 2;
  }
  const bool preset = options.parameters == 0;
  if (!preset) options.report.model = std::to_string(options.parameters) + " parameters";
  options.sweep.backward_seconds = options.backward_ms / 1e3;
  const auto gradients = preset ? gradient_set(options.report.model) : uniform_gradients(options.parameters);
  if (options.tuned || options.ready_order) {
    const WaysOptions ways{.model = options.report.model,
                           .backward_seconds = options.sweep.backward_seconds,
                           .bucket_mib = options.sweep.bucket_mib,
                           .rounds = options.sweep.rounds,
                           .profile = options.profile,
                           .json = options.report.json};
    (options.tuned ? compare_tuned : compare_ready_order)(world, gradients, ways);
    return 0;
  }
  const Sweep result = sweep(world, gradients, options.sweep);
  if (world.rank() == 0) print_table(result, options.report, world.size());
  world.agree([&] {
    if (world.rank() == 0) write_files(result, options.report, world.size());
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Sweeps the sizes of gradient buckets and recommends one");
  command.option("--model", options.report.model, "whose gradients", gradient_set_names());
  command.option("--parameters", options.parameters, "instead of a model: this many, in 64 equal gradients");
  command.option("--bucket-mb", options.sweep.bucket_mib, "sizes in MiB, 0 for one bucket", not_negative);
  command.option("--backward-ms", options.backward_ms, "length of the simulated backward pass; default: that of the reduction",
                 not_negative);
  command.option("--algorithm", options.report.algorithm,
                 "between nodes: automatic, all_pairs, direct, ring, halving_doubling");
  command.option("--progress", options.report.progress, "between nodes: thread or cooperative");
  command.option("--compress", options.sweep.hooks, "compressions to try with each size: fp16, bf16, int8, topk:R, powersgd:R");
  command.flag("--tuned", options.tuned, "instead of the sweep: DataParallel with each size, its default, its tuner");
  command.option("--bucket-profile", options.profile, "file for the tuner's buckets: read if it fits, else written");
  command.needs("--bucket-profile", "--tuned");
  command.flag("--ready-order", options.ready_order,
               "instead of the sweep: two orders of reductions, for a model with two branches");
  command.excludes("--ready-order", "--tuned");
  command.option("--rounds", options.sweep.rounds, "interleaved measurements of each size", {.least = 1, .most = 1000});
  command.option("--json", options.report.json, "write the figures here");
  command.option("--csv", options.report.csv, "file for the results");
  command.option("--svg", options.report.svg, "file for a plot of exposed time by bucket size");
  if (const auto code = command.parse(argc, argv)) return *code;
  if ((options.tuned || options.ready_order) && options.backward_ms < 0) {
    fmt::print(stderr, "allreduce_buckets: --tuned and --ready-order need --backward-ms, the length of your backward pass\n");
    return 2;
  }
  tune_malloc();

  trireme::LaunchOptions launch;
  try {
    launch.algorithm = trireme::parse_algorithm(options.report.algorithm);
    launch.progress = trireme::parse_progress(options.report.progress);
    for (const std::string& hook : options.sweep.hooks) {
      trireme::require(trireme::parallel::parse_compression(hook) != nullptr, "--compress {} leaves nothing to measure", hook);
    }
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "allreduce_buckets: {}\n", error.what());
    return 2;
  }
  return trireme::launch(trireme::BackendKind::mpi, launch, [&](const trireme::Group& world) { return run(world, options); });
}
