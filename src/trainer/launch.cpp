#include "trireme/trainer/launch.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "trainer/signals.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::trainer {

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

// Quotes the text if a shell would not take it as one word.
std::string quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return std::string(word);
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string command_of(int argc, char** argv) {
  const char* processes = std::getenv("OMPI_COMM_WORLD_SIZE");
  std::string command = processes == nullptr ? "" : fmt::format("mpirun -n {}", processes);
  for (int index = 0; index < argc; ++index) command += fmt::format("{}{}", command.empty() ? "" : " ", quoted(argv[index]));
  return command;
}

// Prepares this rank's GPU; returns a group that works on the memory of the GPUs.
Group with_gpus(const Group& world, BackendKind backend, const DeviceOptions& options) {
  const bool threads = backend == BackendKind::thread;
  if (threads) device::set_cuda_device(world.rank() % device::cuda_device_count());
  device::set_cuda_memory_fraction(options.memory_fraction);
  device::allow_tf32(options.allow_tf32);
  return threads ? gpu_group(world) : world;
}

}  // namespace

int launch(int argc, char** argv, CommandLine& line, const Options& defaults, const std::function<void(Run&)>& train) {
  outlive_closed_pipes();
  Options options = defaults;
  options.process = {.signals = true, .terminal = true, .standard_output = true};
  BackendKind backend = BackendKind::mpi;
  LaunchOptions how;
  std::string text;
  std::optional<Error> refusal;
  try {
    line.add_run(options);
    line.add_launch(backend, how);
    text = line.parse(argc, argv);
  } catch (const Error& error) {
    refusal = error;
  }
  // Every process of the job gets here with the same command line; only one prints.
  if (refusal || !text.empty()) {
    return trireme::launch(BackendKind::mpi, {}, [&](const Group& world) {
      world.agree(
          [&] {
            if (refusal) throw *refusal;
          },
          "read the options");
      if (world.rank() == 0) std::fputs(text.c_str(), stdout);
      return static_cast<int>(ExitCode::success);
    });
  }
  options.command = command_of(argc, argv);
  options.configuration = line.configuration();
  const bool on_gpus = line.device() != nullptr && line.device()->device == "cuda";
  if (on_gpus) {
    how.start_up = line.device()->start_up;
    if (backend == BackendKind::mpi) backend = BackendKind::nccl;
  }
  return trireme::launch(backend, how, [&](const Group& group) {
    const Group world = on_gpus ? with_gpus(group, backend, *line.device()) : group;
    Run run(world, options);
    const bool may_be_bound =
        backend == BackendKind::mpi && how.threads_per_rank == 0 && std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    if (const std::string notice = may_be_bound ? binding_notice(world) : ""; !notice.empty()) run.note(notice);
    run.describe("program", line.program(), Differs::told);
    for (const auto& [name, value, usual, differs] : line.settings()) run.describe(name, value, differs, usual);
    train(run);
    world.barrier("end of training");
    return static_cast<int>(ExitCode::success);
  });
}

int launch(int argc, char** argv, const Options& defaults, const std::function<void(Run&)>& train) {
  CommandLine line;
  return launch(argc, argv, line, defaults, train);
}

}  // namespace trireme::trainer
