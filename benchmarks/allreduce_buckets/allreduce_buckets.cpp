// How large should gradient buckets be on this machine or cluster? Sweeps bucket sizes over the gradients of a model, alone and
// beside a simulated backward pass, compares with MPI_Allreduce, and recommends a setting.
//   mpirun -n 2 allreduce_buckets [--model gpt2] [--svg buckets.svg]

#include <CLI/CLI.hpp>

#include "data_parallel_ways.hpp"
#include "measurement/measurement.hpp"
#include "report.hpp"
#include "sweep.hpp"
#include "trireme/comm/launch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/compression.hpp"

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
  CLI::App app("Sweeps the sizes of gradient buckets and recommends one");
  app.add_option("--model", options.report.model, "whose gradients")
      ->check(CLI::IsMember(gradient_set_names()))
      ->capture_default_str();
  app.add_option("--parameters", options.parameters, "in place of a model: so many, in 64 equal gradients")
      ->check(CLI::PositiveNumber);
  app.add_option("--bucket-mb", options.sweep.bucket_mib, "sizes in MiB, 0 for one bucket")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--backward-ms", options.backward_ms, "length of the simulated backward pass; default: that of the reduction")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--algorithm", options.report.algorithm, "between nodes: automatic, exchange, direct, ring, halving_doubling")
      ->capture_default_str();
  app.add_option("--progress", options.report.progress, "between nodes: thread or cooperative")->capture_default_str();
  app.add_option("--compress", options.sweep.hooks, "compressions to try with each size: fp16, bf16, int8, topk:R, powersgd:R")
      ->delimiter(',');
  auto* tuned =
      app.add_flag("--tuned", options.tuned, "in place of the sweep: DataParallel with each size, its default, its tuner");
  app.add_option("--bucket-profile", options.profile, "file where the tuner finds or leaves its buckets")->needs(tuned);
  app.add_flag("--ready-order", options.ready_order,
               "in place of the sweep: what the order of reductions does with two branches")
      ->excludes(tuned);
  app.add_option("--rounds", options.sweep.rounds, "interleaved measurements of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.report.json, "file for the results");
  app.add_option("--csv", options.report.csv, "file for the results");
  app.add_option("--svg", options.report.svg, "file for a plot of exposed time by bucket size");
  CLI11_PARSE(app, argc, argv);
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
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    fmt::print(stderr, "allreduce_buckets: there is nothing to reduce with one rank; start it by mpirun -n N\n");
    return 2;
  }
  return trireme::launch(trireme::BackendKind::mpi, launch, [&](const trireme::Group& world) { return run(world, options); });
}
