#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "training/options.hpp"
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/memory.hpp"

// Processes with GPUs are launched as such, ranks that are threads take theirs afterwards.
inline trireme::BackendKind backend_of(const TrainingOptions& training) {
  return training.device == "cuda" && training.backend == trireme::BackendKind::mpi ? trireme::BackendKind::nccl
                                                                                    : training.backend;
}

// Prepares this rank's GPU; the group reaches the memory of all of them.
inline trireme::Group with_gpus(const trireme::Group& world, const TrainingOptions& training) {
  using namespace trireme;
  const bool threads = training.backend == BackendKind::thread;
  if (threads) device::set_cuda_device(world.rank() % device::cuda_device_count());
  device::set_cuda_memory_fraction(training.memory_fraction);
  device::allow_tf32(training.allow_tf32);
  return threads ? gpu_group(world) : world;
}

// The main of a trainer: reads the options, starts the ranks and calls train(options, world) on each.
// parse_options(argc, argv, help) throws trireme::Error; a text in `help` is printed instead of training.
template <typename Parse, typename Train>
int run_program(int argc, char** argv, Parse parse_options, Train train) {
  using namespace trireme;
  std::string help;
  std::optional<decltype(parse_options(argc, argv, help))> options;
  std::optional<Error> refusal;
  try {
    options = parse_options(argc, argv, help);
    if (options->training.device == "cuda") device::require_cuda();
  } catch (const Error& error) {
    refusal = error;
  }
  // Every process of a job gets here with the same command line; one of them speaks for all.
  if (refusal) {
    return launch(BackendKind::mpi, {}, [&](const Group& world) {
      world.agree([&] { throw *refusal; }, "read the options");
      return 2;
    });
  }
  if (!help.empty()) {
    return launch(BackendKind::mpi, {}, [&](const Group& world) {
      if (world.rank() == 0) std::fputs(help.c_str(), stdout);
      return 0;
    });
  }
  const TrainingOptions& training = options->training;
  const LaunchOptions how{.ranks = training.ranks,
                          .threads_per_rank = training.threads,
                          .flight_directory = training.flight_directory,
                          .start_up = training.start_up};
  return launch(backend_of(training), how, [&](const Group& world) {
    train(*options, training.device == "cuda" ? with_gpus(world, training) : world);
    return 0;
  });
}
