#include "training/run_steps.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <vector>

using namespace trireme;

namespace {

// mpirun binds each rank of a small job to one core; the others then idle.
std::string binding_notice(const Group& world) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {};
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const int bound = CPU_COUNT(&mask);
  if (bound * world.size() >= cores) return {};
  return fmt::format("note: mpirun has bound every rank to {} of {} cores; mpirun --bind-to none lets them use all", bound,
                     cores);
}

void print_binding(const TrainingOptions& options, const Group& world) {
  if (world.rank() != 0 || options.backend != BackendKind::mpi || options.threads != 0) return;
  const std::string notice = binding_notice(world);
  if (!notice.empty()) fmt::print("{}\n", notice);
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool run_steps(const TrainingOptions& options, const Group& world, const std::string& unit, RunCheckpoints& checkpoints,
               const RunSteps& steps) {
  print_binding(options, world);
  const std::int64_t first_step = checkpoints.first_step();
  std::int64_t done = first_step;
  bool stopped = false;
  std::chrono::steady_clock::time_point start;
  {
    Progress progress(options.steps, unit, world.rank() == 0);
    for (const std::string& line : checkpoints.load(steps.add_to)) progress.note(line);
    start = std::chrono::steady_clock::now();
    while (done < options.steps && !stopped) {
      const StepRequests requests = steps.step(done++, progress);
      const auto after = checkpoints.after_step(done, requests, steps.add_to);
      for (const std::string& line : after.notes) progress.note(line);
      stopped = after.stop;
    }
  }
  if (stopped) return false;
  if (!options.save.empty()) world.agree(steps.save, "write the weights");
  if (world.rank() == 0) {
    if (done > first_step) {
      steps.print_end(seconds_since(start), done - first_step);
    } else {
      fmt::print("all {} steps were done before\n", options.steps);
    }
    if (!options.save.empty()) fmt::print("weights written to {}\n", options.save);
  }
  checkpoints.finished();
  return true;
}
