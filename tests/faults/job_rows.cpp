#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "faults/process.hpp"
#include "faults/programs.hpp"
#include "faults/rows.hpp"
#include "processes.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void until(const char* what, const std::function<bool()>& true_at_last) {
  constexpr double limit = 30;
  const auto begin = Clock::now();
  while (!true_at_last()) {
    require(seconds_since(begin) < limit, "{}: not within {} s", what, limit);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// trireme-run with train_gpt on two ranks, which saves in a folder of its own.
class Training {
 public:
  Training(const fs::path& folder, std::string name, int steps, int interval)
      : steps_(steps),
        interval_(interval),
        data_(folder / "text"),
        directory_(folder / name),
        output_(folder / (name + ".out")) {
    std::ofstream text(data_);
    for (int line = 0; line < 200; ++line) text << "line " << line << " of a text to learn: the quick brown fox\n";
  }
  ~Training() { fs::remove_all(directory_); }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  std::unique_ptr<Process> start() const {
    const auto text = [](int number) { return fmt::format("{}", number); };
    return std::make_unique<Process>(std::vector<std::string>{programs::trireme_run,
                                                              "--",
                                                              programs::mpiexec,
                                                              "-n",
                                                              "2",
                                                              programs::train_gpt,
                                                              "--data",
                                                              data_,
                                                              "--layers",
                                                              "2",
                                                              "--heads",
                                                              "2",
                                                              "--width",
                                                              "32",
                                                              "--block",
                                                              "16",
                                                              "--batch-size",
                                                              "12",
                                                              "--warmup",
                                                              "2",
                                                              "--validation-interval",
                                                              "0",
                                                              "--steps",
                                                              text(steps_),
                                                              "--checkpoint-dir",
                                                              directory_,
                                                              "--checkpoint-interval",
                                                              text(interval_)},
                                     output_);
  }

  void run_to_end() const {
    const int code = start()->wait();
    require(code == 0, "the job ends with exit code {}: {}", code, output());
  }

  std::string output() const { return text_of(output_); }
  const fs::path& directory() const { return directory_; }
  int steps() const { return steps_; }

  std::optional<std::int64_t> newest() const {
    const auto committed = checkpoint::committed_steps(directory_);
    return committed.empty() ? std::nullopt : std::optional(committed.back());
  }
  // Of weights and moments after the last step.
  std::uint64_t final_digest() const {
    require(newest() == steps_, "the last step was not saved: {}", output());
    return checkpoint::CheckpointReader(checkpoint::checkpoint_folder(directory_, steps_)).manifest().digest();
  }

 private:
  int steps_;
  int interval_;
  fs::path data_;
  fs::path directory_;
  fs::path output_;
};

// True once it has blocked SIGTERM, the first action of its main.
bool listens(pid_t process) {
  const std::string status = text_of(fmt::format("/proc/{}/status", process));
  const std::string field = "SigBlk:\t";
  const std::size_t at = status.find(field);
  std::uint64_t blocked = 0;
  if (at != std::string::npos) std::from_chars(&status[at + field.size()], &status.back(), blocked, 16);
  return (blocked >> (SIGTERM - 1) & 1) != 0;
}

// The step that the trainer said it has saved when it was stopped.
std::optional<std::int64_t> stopped_after(const std::string& output) {
  const std::string words = "stopped on a signal after step ";
  const std::size_t at = output.find(words);
  return at == std::string::npos ? std::nullopt : std::optional(std::stoll(output.substr(at + words.size())));
}

// How the job ended: "saved", "not begun" or "finished".
std::string expect_stopped(const Training& training, double delay) {
  auto job = training.start();
  until("trireme-run listens", [&] { return listens(job->id()); });
  std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  job->signal(SIGTERM);
  constexpr std::chrono::seconds less_than_grace{20};  // after which trireme-run ends a job that has not heard
  const int code = job->wait(less_than_grace);
  require(code == 0, "exit code {}: {}", code, training.output());
  if (const auto step = stopped_after(training.output())) {
    require(training.newest() == step, "stopped after step {}: {}", *step, training.output());
    return "saved";
  }
  const auto newest = training.newest();
  if (newest == training.steps()) return "finished";
  require(!newest, "stopped after the checkpoint of step {} without a word: {}", *newest, training.output());
  return "not begun";
}

}  // namespace

Row kill_at_random(Extent extent) {
  const std::string kills = extent == Extent::full ? "200" : "5";
  const TemporaryFolder folder;
  Row row("kill", "SIGKILL of a random process of a job at a random time: a rank, mpirun, trireme-run or its guardian");
  Process test({programs::kill_test, kills, programs::trireme_run, programs::run_program, programs::mpiexec, "7"},
               folder.path() / "output");
  const int code = test.wait(std::chrono::hours(2));
  const std::string output = test.output();
  const std::size_t at = output.find(fmt::format(" of {} jobs ended well", kills));
  require(at != std::string::npos, "{}", output);
  const int good = std::stoi(output.substr(output.rfind('\n', at) + 1));
  if (code != 0) fmt::print("{}", output);
  for (int kill = 0; kill < std::stoi(kills); ++kill) {
    row.attempt("a kill", [&] { require(kill < good, "see above"); });
  }
  return row;
}

Row preempt(Extent extent) {
  const TemporaryFolder folder;
  Row row(
      "preemption",
      "SIGTERM to trireme-run at a random moment from its start on, half of them in the first quarter; then the same command "
      "again");
  const auto begin = Clock::now();
  const Training whole(folder.path(), "whole", 400, 50);
  whole.run_to_end();
  const double longest = seconds_since(begin);
  std::uniform_real_distribution<double> part(0, 1);
  std::mt19937_64 random(23);
  std::map<std::string, int> endings;
  for (int number = 0; number < (extent == Extent::full ? 100 : 3); ++number) {
    const double seconds = longest * part(random) / (number % 2 == 0 ? 4 : 1);
    row.attempt(fmt::format("SIGTERM after {:.3f} s", seconds), [&] {
      const Training training(folder.path(), "stopped", whole.steps(), 50);
      ++endings[expect_stopped(training, seconds)];
      training.run_to_end();
      require(training.final_digest() == whole.final_digest(), "another state after {} steps", whole.steps());
    });
  }
  row.note(fmt::format("{} saved, {} before their first step, {} after their last", endings["saved"], endings["not begun"],
                       endings["finished"]));
  return row;
}

Row restart(Extent extent) {
  constexpr double limit = 5;
  const TemporaryFolder folder;
  Row row("restart", fmt::format("SIGKILL of a rank of train_gpt; at most {} s to the first new step", limit));
  std::vector<double> times;
  for (int number = 0; number < (extent == Extent::full ? 20 : 1); ++number) {
    row.attempt(fmt::format("kill {}", number), [&] {
      const Training training(folder.path(), "killed", 1'000'000, 20);
      auto job = training.start();
      until("two checkpoints", [&] { return training.newest().value_or(0) >= 40; });
      auto processes = family_of(job->id());
      std::erase_if(processes, [](const LivingProcess& process) { return !is_rank(process.id); });
      require(processes.size() == 2, "{} ranks", processes.size());
      const auto has_status = [&] {  // rank 0 writes it after its first step, trireme-run removes it before each start
        return std::ranges::any_of(fs::directory_iterator(training.directory()),
                                   [](const auto& entry) { return fs::exists(entry.path() / "status.json"); });
      };
      const auto killed = Clock::now();
      kill(processes[static_cast<std::size_t>(number) % 2].id, SIGKILL);
      until("the job is started again", [&] { return !has_status(); });
      until("the first new step", has_status);
      times.push_back(seconds_since(killed));
      require(times.back() <= limit, "{:.2f} s", times.back());
      job->signal(SIGTERM);
      const int code = job->wait();
      require(code == 0, "it does not stop: exit code {}: {}", code, training.output());
    });
  }
  std::ranges::sort(times);
  if (!times.empty()) row.note(fmt::format("median {:.2f} s, longest {:.2f} s", times[times.size() / 2], times.back()));
  return row;
}

}  // namespace trireme::tests
