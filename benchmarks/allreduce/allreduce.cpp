// All-reduce of float32 buffers: our group against MPI_Allreduce and, on one machine, the limit of the memory.
//   mpirun -n 2 allreduce [--json FILE]

#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "contenders.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace {

struct Options {
  std::size_t least_bytes = std::size_t{1} << 10;
  std::size_t most_bytes = std::size_t{256} << 20;
  std::size_t factor = 4;
  int rounds = 5;
  std::string json;
};

constexpr double longest_measurement = 1;  // seconds, about, of one contender in one round

// Ranks leave a barrier up to a microsecond apart, which is as long as a small call. So they begin at the next full 20 us of
// their common clock. Ranks that share cores can't begin together.
std::chrono::steady_clock::time_point start_together() {
  using Clock = std::chrono::steady_clock;
  constexpr auto interval = std::chrono::microseconds(20);
  static const bool own_core = [] {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency();
  }();
  if (!own_core) return Clock::now();
  const auto now = Clock::now().time_since_epoch();
  const Clock::time_point begin(now - now % interval + 2 * interval);
  while (Clock::now() < begin) {
  }
  return begin;
}

// Seconds of one call: the slowest rank's, the median over `calls`. Every rank writes its whole buffer before each call, so
// that the caches hold what they hold in training.
double measure(Contender& contender, std::size_t count, int calls) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds(static_cast<std::size_t>(calls));
  for (double& one : seconds) {
    std::ranges::fill(contender.buffer().first(count), 1.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = start_together();
    contender.sum(count);
    one = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  MPI_Allreduce(MPI_IN_PLACE, seconds.data(), calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return median(seconds);
}

// A ratio that the table prints beside the times: time of the first / time of the second.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> ratios = {
    {{"mpi", "group"}, {"mpi", "heap"}, {"fixed", "group"}, {"limit", "group"}, {"flags", "group"}}};

bool has(const std::vector<std::unique_ptr<Contender>>& contenders, std::string_view name) {
  return std::ranges::any_of(contenders, [name](const auto& contender) { return contender->name() == name; });
}

void print_head(const std::vector<std::unique_ptr<Contender>>& contenders, int ranks) {
  fmt::print("float32 sum over {} ranks, microseconds per call\n{:>10}", ranks, "bytes");
  for (const auto& contender : contenders) fmt::print(" {:>10}", contender->name());
  for (const auto& [slow, quick] : ratios) {
    if (has(contenders, slow)) fmt::print(" {:>11}", fmt::format("{}/{}", slow, quick));
  }
  fmt::print("\n");
}

void print_row(std::size_t bytes, const std::vector<std::unique_ptr<Contender>>& contenders,
               const std::map<std::string_view, double>& seconds) {
  fmt::print("{:>10}", bytes);
  for (const auto& contender : contenders) fmt::print(" {:>10.2f}", seconds.at(contender->name()) * 1e6);
  for (const auto& [slow, quick] : ratios) {
    if (has(contenders, slow)) fmt::print(" {:>11.2f}", seconds.at(slow) / seconds.at(quick));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

int run(const trireme::Group& world, const Options& options) {
  const auto contenders = make_contenders(world, options.most_bytes / sizeof(float));
  auto results = nlohmann::ordered_json::array();
  if (world.rank() == 0) print_head(contenders, world.size());
  for (std::size_t bytes = options.least_bytes; bytes <= options.most_bytes; bytes *= options.factor) {
    const std::size_t count = bytes / sizeof(float);
    double calls = std::clamp(static_cast<double>(std::size_t{32} << 20) / static_cast<double>(bytes), 3.0, 1000.0);
    std::map<std::string_view, std::vector<double>> rounds;
    for (const auto& contender : contenders) {  // between machines a call may take long
      const double seconds = measure(*contender, count, std::max(1, static_cast<int>(std::min(calls, 100.0) / 10)));
      calls = std::clamp(longest_measurement / seconds, 3.0, calls);
    }
    for (int round = 0; round < options.rounds; ++round) {
      for (const auto& contender : contenders)
        rounds[contender->name()].push_back(measure(*contender, count, static_cast<int>(calls)));
    }
    std::map<std::string_view, double> seconds;
    nlohmann::ordered_json result{{"bytes", bytes}, {"ranks", world.size()}};
    for (const auto& contender : contenders) {
      seconds[contender->name()] = median(rounds[contender->name()]);
      result[fmt::format("{}_seconds", contender->name())] = seconds[contender->name()];
      result["rounds"][std::string(contender->name())] = rounds[contender->name()];
    }
    result["ratio"] = seconds["mpi"] / seconds["group"];
    results.push_back(result);
    if (world.rank() == 0) print_row(bytes, contenders, seconds);
  }
  world.agree([&] {
    if (world.rank() == 0) write_json(options.json, results);
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("All-reduce: our group, MPI_Allreduce and, inside one machine, the limit of the memory");
  command.option("--least-bytes", options.least_bytes, "smallest buffer", {.least = 4, .most = 1 << 30});
  command.option("--most-bytes", options.most_bytes, "largest buffer", {.least = 4, .most = 1 << 30});
  command.option("--factor", options.factor, "from one size to the next", {.least = 2, .most = 1 << 20});
  command.option("--rounds", options.rounds, "measurements of which the median counts", {.least = 1, .most = 1000});
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  tune_malloc();
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);  // one rank, without mpirun
  }
  return trireme::launch(trireme::BackendKind::mpi, {}, [&](const trireme::Group& world) { return run(world, options); });
}
