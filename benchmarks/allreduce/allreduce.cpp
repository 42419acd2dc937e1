// The sum of float32 buffers over the ranks of one machine: our group against MPI_Allreduce and the limit of the memory.
//   mpirun -n 2 allreduce [--json FILE]

#define OMPI_SKIP_MPICXX 1
#include <fmt/core.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "contenders.hpp"
#include "measurement/measurement.hpp"
#include "trireme/comm/launch.hpp"

namespace {

struct Options {
  std::size_t least_bytes = std::size_t{1} << 10;
  std::size_t most_bytes = std::size_t{256} << 20;
  std::size_t factor = 4;
  int rounds = 5;
  std::string json;
};

// Seconds of one call: the slowest rank's, the median over `calls`. Every rank writes its whole buffer before each call, so
// that the caches hold what they hold in training.
double measure(Contender& contender, std::size_t count, int calls) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(static_cast<std::size_t>(calls));
  for (double& one : seconds) {
    std::ranges::fill(contender.buffer().first(count), 1.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = Clock::now();
    contender.sum(count);
    one = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds.data(), calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return median(seconds);
}

int run(const trireme::Group& world, const Options& options) {
  const auto contenders = make_contenders(world, options.most_bytes / sizeof(float));
  auto results = nlohmann::json::array();
  if (world.rank() == 0) {
    fmt::print("float32 sum over {} ranks, microseconds per call\n", world.size());
    fmt::print("{:>10} {:>12} {:>12} {:>12} {:>10} {:>10}\n", "bytes", "group", "mpi", "limit", "mpi/group", "limit/group");
  }
  for (std::size_t bytes = options.least_bytes; bytes <= options.most_bytes; bytes *= options.factor) {
    const std::size_t count = bytes / sizeof(float);
    const int calls = static_cast<int>(std::clamp<std::size_t>((std::size_t{32} << 20) / bytes, 3, 1000));
    std::vector<std::vector<double>> seconds(contenders.size());
    for (const auto& contender : contenders) measure(*contender, count, std::max(1, calls / 10));
    for (int round = 0; round < options.rounds; ++round) {
      for (std::size_t index = 0; index < contenders.size(); ++index) {
        seconds[index].push_back(measure(*contenders[index], count, calls));
      }
    }
    const double group = median(seconds[0]);
    const double mpi = median(seconds[1]);
    const double limit = median(seconds[2]);
    results.push_back({{"bytes", bytes},
                       {"ranks", world.size()},
                       {"group_seconds", group},
                       {"mpi_seconds", mpi},
                       {"limit_seconds", limit},
                       {"ratio", mpi / group}});
    if (world.rank() == 0) {
      fmt::print("{:>10} {:>12.2f} {:>12.2f} {:>12.2f} {:>10.2f} {:>10.2f}\n", bytes, group * 1e6, mpi * 1e6, limit * 1e6,
                 mpi / group, limit / group);
      std::fflush(stdout);
    }
  }
  world.agree([&] {
    if (world.rank() == 0) write_text(options.json, results.dump(2) + "\n");
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("All-reduce inside one machine: our group, MPI_Allreduce and the limit of the memory");
  app.add_option("--least-bytes", options.least_bytes, "smallest buffer")
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 30));
  app.add_option("--most-bytes", options.most_bytes, "largest buffer")->check(CLI::Range(std::size_t{4}, std::size_t{1} << 30));
  app.add_option("--factor", options.factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--rounds", options.rounds, "measurements of which the median counts")->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json, "file for the results");
  CLI11_PARSE(app, argc, argv);

  tune_malloc();
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);  // one rank, without mpirun
  }
  return trireme::launch(trireme::BackendKind::mpi, {}, [&](const trireme::Group& world) { return run(world, options); });
}
