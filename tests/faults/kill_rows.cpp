#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <map>
#include <random>
#include <sstream>

#include "faults/process.hpp"
#include "faults/programs.hpp"
#include "faults/rows.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;

constexpr int steps = 8;
constexpr int interval = 2;  // more checkpoints than are kept: old ones are removed too
constexpr int killed = 128 + SIGKILL;

// What a run of saving_job has written down.
struct Log {
  std::int64_t start = -1;
  std::map<std::int64_t, std::string> digests = {};  // by step, that of the start too
  std::int64_t committed = 0;
  std::vector<std::int64_t> calls = {};  // by rank
};

Log read_log(const fs::path& path) {
  Log log;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    std::int64_t number = 0;
    words >> what >> number;
    if (what == "start") log.start = number;
    if (what == "start" || what == "step") {
      words >> log.digests[number];
    } else if (what == "committed") {
      log.committed = number;
    } else if (what == "calls") {
      do log.calls.push_back(number);
      while (words >> number);
    }
  }
  return log;
}

struct Killing {
  int rank = 0;
  std::int64_t call = 0;
  bool after = false;
  bool at_once = true;  // mpirun ends the other ranks; otherwise a second later
};

// The same job again and again, on so many ranks, killed at one point after the other.
class KilledJob {
 public:
  explicit KilledJob(int ranks) : ranks_(ranks) {
    whole_ = run_to_end();
    require(std::ssize(whole_.calls) == ranks && whole_.committed == steps, "the undisturbed job saves: {}", text_of(log_));
  }

  const std::vector<std::int64_t>& calls() const { return whole_.calls; }  // of the undisturbed job, by rank

  void expect_resumed(const Killing& killing) {
    fs::remove_all(directory_);
    const int code = run({fmt::format("{}", killing.rank), fmt::format("{}", killing.call), killing.after ? "after" : "before"},
                         killing.at_once ? "0" : "1");
    require(code == killed, "exit code {}: {}", code, text_of(output_));
    const Log before = read_log(log_);
    const auto committed = checkpoint::committed_steps(directory_);
    const std::int64_t newest = committed.empty() ? 0 : committed.back();
    require(newest >= before.committed, "step {} was committed, the newest is {}", before.committed, newest);
    const Log resumed = run_to_end();
    require(resumed.start == newest, "it goes on from {} instead of {}", resumed.start, newest);
    for (const std::int64_t step : {newest, std::int64_t{steps}}) {
      require(resumed.digests.at(step) == whole_.digests.at(step), "after step {} the state is another one", step);
    }
  }

 private:
  Log run_to_end() {
    const int code = run({});
    require(code == 0, "the job ends with exit code {}: {}", code, text_of(output_));
    return read_log(log_);
  }

  int run(const std::vector<std::string>& killing, const std::string& patience = "0") {
    fs::remove(log_);
    std::vector<std::string> command;
    if (ranks_ > 1) {
      // Open MPI 5 has no such setting.
      command = {"env", "OMPI_MCA_odls_base_sigkill_timeout=" + patience, programs::mpiexec, "-n", fmt::format("{}", ranks_)};
    }
    command.insert(command.end(), {programs::saving_job, directory_, fmt::format("{}", steps), fmt::format("{}", interval)});
    command.insert(command.end(), killing.begin(), killing.end());
    return Process(command, output_).wait();
  }

  int ranks_;
  TemporaryFolder folder_;
  fs::path directory_ = folder_.path() / "run";
  fs::path log_ = folder_.path() / "run.log";
  fs::path output_ = folder_.path() / "output";
  Log whole_;
};

void attempt(Row& row, KilledJob& job, const Killing& killing) {
  row.attempt(fmt::format("rank {} killed {} call {}", killing.rank, killing.after ? "after" : "before", killing.call),
              [&] { job.expect_resumed(killing); });
}

}  // namespace

Row kill_at_calls_of_one(Extent extent) {
  KilledJob job(1);
  const std::int64_t calls = job.calls().front();
  const std::int64_t stride = extent == Extent::full ? 1 : 13;
  Row row("kill", fmt::format("SIGKILL before and after {} of the {} calls to the file system of a job with {} saves, 1 rank",
                              stride == 1 ? "each" : fmt::format("every {}th", stride), calls, steps / interval));
  for (std::int64_t call = 1; call <= calls; call += stride) {
    for (const bool after : {false, true}) attempt(row, job, {.call = call, .after = after});
  }
  return row;
}

Row kill_at_calls_of_four(Extent extent) {
  constexpr int ranks = 4;
  KilledJob job(ranks);
  Row row("kill", fmt::format("the same before or after random calls of a random rank of {}; their calls: {}", ranks,
                              fmt::join(job.calls(), ", ")));
  std::mt19937_64 random(17);
  // Rank 0 makes most of the calls: those that commit.
  std::discrete_distribution<int> rank(job.calls().begin(), job.calls().end());
  const bool full = extent == Extent::full;
  for (int number = 0; number < (full ? 200 : 8); ++number) {
    Killing killing{.rank = rank(random), .at_once = !full || number % 2 == 0};
    killing.call = std::uniform_int_distribution<std::int64_t>(1, job.calls()[static_cast<std::size_t>(killing.rank)])(random);
    killing.after = random() % 2 == 0;
    attempt(row, job, killing);
  }
  return row;
}

}  // namespace trireme::tests
