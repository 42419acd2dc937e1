#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "trireme/comm/group.hpp"

namespace trireme {

enum class BackendKind : std::uint8_t {
  thread,  // ranks are threads of this process
  mpi,     // ranks are the processes that mpirun started; one rank without it
};

struct LaunchOptions {
  int ranks = 1;  // thread backend; mpi takes mpirun's number
  // OpenMP threads; 0: OMP_NUM_THREADS, or where it is not set, cores of this rank's affinity mask / ranks that share them.
  int threads_per_rank = 0;
  std::chrono::milliseconds deadline = std::chrono::minutes(10);  // of every wait for other ranks
};

// Runs `main` once on every rank with the world group and returns this process's exit code: the largest of its ranks'.
// A rank that throws makes all other ranks throw Error{peer_failed} at their next wait; the first error is printed once,
// and the exit code is 2 for Error{invalid_argument, io, corrupt_file, not_available, rank_mismatch}, else 1.
int launch(BackendKind backend, const LaunchOptions& options, const std::function<int(Group)>& main);

BackendKind parse_backend(std::string_view name);  // "thread" or "mpi"

}  // namespace trireme
