#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/run_status.hpp"

// A job that behaves as a trainer without training, for the tests of trireme-run.
//   run_program --checkpoint-dir DIR STEPS INTERVAL STEP_MS [FAULT STEP TIMES]
// Each step is one collective; every INTERVAL steps rank 0 commits a checkpoint. FAULT, of the last rank, happens after step
// STEP, 0 for before the first, in the first TIMES starts. DIR/log has a line for each start and each step, once it is saved,
// with its time.

namespace {

namespace fs = std::filesystem;
using namespace trireme;

std::atomic<bool> asked = false;
void ask(int) { asked = true; }

fs::path folder_of(const fs::path& folder, std::uint64_t step) { return folder / fmt::format("step-{:09}", step); }

std::uint64_t first_step(const fs::path& folder) {
  const char* resume = std::getenv("TRIREME_RESUME");
  const std::string_view choice = resume == nullptr ? "auto" : resume;
  if (choice == "none") return 0;
  if (choice != "auto") {
    const auto step = std::stoull(std::string(choice));
    require(fs::exists(folder_of(folder, step) / "manifest.json"), "there is no checkpoint of step {}", step);
    return step;
  }
  std::uint64_t last = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step-") && fs::exists(entry.path() / "manifest.json"))
      last = std::max<std::uint64_t>(last, std::stoull(name.substr(5)));
  }
  return last;
}

void save(const fs::path& folder, std::uint64_t step) {
  const fs::path temporary = folder / fmt::format(".tmp-{}", step);
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  std::ofstream(temporary / "manifest.json") << "{}\n";
  fs::remove_all(folder_of(folder, step));
  fs::rename(temporary, folder_of(folder, step));
}

void fail(std::string_view fault) {
  if (fault == "exit") std::exit(1);
  if (fault == "abort") std::abort();
  if (fault == "segv") raise(SIGSEGV);
  if (fault == "kill") raise(SIGKILL);
  if (fault == "hang" || fault == "mute") std::this_thread::sleep_for(std::chrono::hours(1));
  if (fault == "configuration") throw Error({.code = ErrorCode::io, .message = "the data are gone"});
  if (fault == "memory") throw std::bad_alloc();
  if (fault == "diverged") throw Error({.code = ErrorCode::diverged, .message = "the loss is nan"});
}

struct Run {
  fs::path folder;
  std::uint64_t steps = 0;
  std::uint64_t interval = 0;
  std::chrono::milliseconds step_time{0};
  std::string fault = {};
  std::uint64_t fault_step = 0;
  std::uint64_t fault_times = 0;
};

void log(const Run& run, const std::string& text) {
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::ofstream(run.folder / "log", std::ios::app) << fmt::format("{:.3f} {}\n", now, text);
}

// How often it was started before, for all ranks.
std::uint64_t count_starts(const Run& run, const Group& world) {
  std::array<std::int64_t, 1> starts{};
  if (world.rank() == 0) {
    std::ifstream(run.folder / "starts") >> starts[0];
    std::ofstream(run.folder / "starts") << starts[0] + 1;
  }
  world.broadcast(std::span(starts), 0, "starts").wait_on_host();
  return static_cast<std::uint64_t>(starts[0]);
}

int train(const Run& run, const Group& world) {
  const bool first = world.rank() == 0;
  const bool last = world.rank() == world.size() - 1;
  const std::uint64_t starts = count_starts(run, world);
  std::array<std::int64_t, 1> begin{};
  world.agree([&] {
    if (first) begin[0] = static_cast<std::int64_t>(first_step(run.folder));
  });
  world.broadcast(std::span(begin), 0, "begin").wait_on_host();
  const auto start = static_cast<std::uint64_t>(begin[0]);
  if (first) log(run, fmt::format("start {}", start));

  if (run.fault_step == 0) world.barrier("begun");
  if (last && run.fault_step == 0 && starts < run.fault_times) fail(run.fault);
  RunStatus status{.step = start};
  if (start > 0) status.checkpoint = start;
  for (std::uint64_t step = start + 1; step <= run.steps; ++step) {
    std::this_thread::sleep_for(run.step_time);
    std::array<float, 1> stop = {asked ? 1.0f : 0.0f};
    world.all_reduce(std::span(stop), ReduceOp::max, "stop").wait_on_host();
    status.step = step;
    const bool stops = stop[0] != 0;
    const bool saves = stops || step % run.interval == 0;
    if (first && saves) {
      save(run.folder, step);
      status.checkpoint = step;
    }
    if (first) log(run, fmt::format("step {}", step));
    if (stops) status.state = RunState::stopped;
    if (first && (saves || step == start + 1)) report_run_status(status);
    if (stops) return 0;
    if (last && step == run.fault_step && starts < run.fault_times) fail(run.fault);
  }
  status.state = RunState::finished;
  if (first) report_run_status(status);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 64;
  Run run{.folder = argv[2],
          .steps = std::stoull(argv[3]),
          .interval = std::stoull(argv[4]),
          .step_time = std::chrono::milliseconds(std::stoi(argv[5]))};
  if (argc > 8) {
    run.fault = argv[6];
    run.fault_step = std::stoull(argv[7]);
    run.fault_times = std::stoull(argv[8]);
  }
  signal(SIGTERM, ask);
  signal(SIGUSR1, ask);
  const LaunchOptions options{.threads_per_rank = 1, .deadline = std::chrono::milliseconds(run.fault == "hang" ? 700 : 60'000)};
  return launch(BackendKind::mpi, options, [&](const Group& world) { return train(run, world); });
}
