// The cost of the flight recorder: small all-reduces with it and without it, in turn.
//   mpirun -n 2 flight_benchmark [--json FILE]        flight_benchmark --threads 2

#if defined(TRIREME_BENCHMARK_MPI)
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/flight/flight_recorder.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/device/memory.hpp"

namespace {

using trireme::Group;

struct Options {
  std::vector<std::size_t> bytes = {4, 1024, 16384, 262144};
  int calls = 5000;
  int rounds = 21;
  int threads = 0;
  std::string folder = "/dev/shm/trireme-flight-benchmark";
  std::string json;
};

// Seconds of one all-reduce, by size.
std::vector<double> measure(const Group& world, const Options& options) {
  std::vector<double> seconds;
  for (const std::size_t bytes : options.bytes) {
    const trireme::device::Storage storage(world.memory(), bytes);
    const std::span data(static_cast<float*>(storage.data()), bytes / sizeof(float));
    std::ranges::fill(data, 0.0f);
    const auto sum = [&] { world.all_reduce(data, trireme::ReduceOp::sum, "layer.0.weight").wait_on_host(); };
    for (int call = 0; call < options.calls / 10; ++call) sum();
    const trireme::Stopwatch stopwatch;
    for (int call = 0; call < options.calls; ++call) sum();
    seconds.push_back(stopwatch.seconds() / options.calls);
  }
  return seconds;
}

// Nanoseconds to record one call, its start and its end.
double entry_nanoseconds(const Options& options) {
  using namespace trireme::comm;
  FlightRecorder recorder(options.folder, {.rank = 0, .size = 1, .job = 1});
  RecordedGroup group;
  const Members members = world_members(0, 1);
  constexpr int entries = 100'000;
  std::vector<double> times;
  for (int round = 0; round < 9; ++round) {
    const trireme::Stopwatch stopwatch;
    for (int entry = 0; entry < entries; ++entry) {
      recorder.finish(recorder.issue(
          group, members, trireme::Call{.kind = trireme::CallKind::all_reduce, .count = 1024, .name = "layer.0.weight"}));
    }
    times.push_back(1e9 * stopwatch.seconds() / entries);
  }
  return median(times);
}

struct Results {
  std::vector<std::vector<double>> off;  // by size
  std::vector<std::vector<double>> on;
  int ranks = 1;
};

int run(const Options& options, Results& results) {
  results.off.resize(options.bytes.size());
  results.on.resize(options.bytes.size());
  const auto backend = options.threads > 0 ? trireme::BackendKind::thread : trireme::BackendKind::mpi;
  for (int round = 0; round < 2 * options.rounds; ++round) {
    const bool records = round % 2 == (round / 2) % 2;  // so that neither is always first
    const int code = trireme::launch(
        backend,
        {.ranks = std::max(1, options.threads), .threads_per_rank = 1, .flight_directory = records ? options.folder : ""},
        [&](const Group& world) {
          const auto seconds = measure(world, options);
          if (world.rank() != 0) return 0;
          results.ranks = world.size();
          auto& of_kind = records ? results.on : results.off;
          for (std::size_t size = 0; size < seconds.size(); ++size) {
            of_kind[size].push_back(seconds[size]);
          }
          return 0;
        });
    if (code != 0) return code;
  }
  return 0;
}

int report(const Options& options, const Results& results) {
  const double entry = entry_nanoseconds(options);
  auto sizes = nlohmann::json::array();
  fmt::print("float32 sum over {} ranks, microseconds per call; an entry costs {:.0f} ns\n", results.ranks, entry);
  fmt::print("{:>10} {:>12} {:>12} {:>8}\n", "bytes", "without", "recorded", "ratio");
  for (std::size_t size = 0; size < options.bytes.size(); ++size) {
    const double off = median(results.off[size]);
    const double on = median(results.on[size]);
    fmt::print("{:>10} {:>12.3f} {:>12.3f} {:>8.3f}\n", options.bytes[size], off * 1e6, on * 1e6, on / off);
    sizes.push_back({{"bytes", options.bytes[size]}, {"off_seconds", off}, {"on_seconds", on}, {"ratio", on / off}});
  }
  const nlohmann::json result({{"ranks", results.ranks}, {"entry_nanoseconds", entry}, {"sizes", sizes}});
  try {
    write_json(options.json, result);
  } catch (const trireme::Error& error) {
    fmt::print(stderr, "flight_benchmark: {}\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What the flight recorder adds to small all-reduces");
  command.option("--bytes", options.bytes, "sizes of the buffers", {.least = 4, .most = 1 << 30});
  command.option("--calls", options.calls, "calls of one measurement", {.least = 10, .most = 1'000'000});
  command.option("--rounds", options.rounds, "measurements of each kind, of which the median counts",
                 {.least = 1, .most = 1000});
  command.option("--threads", options.threads, "ranks as threads, instead of mpirun's processes");
  command.option("--flight-dir", options.folder, "folder for the recordings; removed at the end");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  bool speaks = true;
#if defined(TRIREME_BENCHMARK_MPI)
  int provided = 0;
  if (options.threads == 0) {  // this program owns MPI, so launch may be called again and again
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    speaks = rank == 0;
  }
#endif
  Results results;
  int code = run(options, results);
  if (code == 0 && speaks) code = report(options, results);
#if defined(TRIREME_BENCHMARK_MPI)
  if (options.threads == 0) MPI_Finalize();
#endif
  std::error_code ignored;
  if (speaks) std::filesystem::remove_all(options.folder, ignored);
  return code;
}
