#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "trireme/comm/base/group.hpp"
#include "trireme/comm/nccl/gpu_group.hpp"
#include "trireme/comm/wire/algorithm.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

enum class BackendKind : std::uint8_t {
  thread,  // ranks are threads of this process
  mpi,     // ranks are the processes that mpirun started, or a single process; processes that MPI did not join are an error
  nccl,    // ranks are processes with a GPU each, see StartUp and comm/nccl/gpu_group.hpp
};

// The launcher that started the processes. The launcher's environment variables tell the processes how to find each other.
// `automatic` takes the first of these launchers that has set its variables: mpirun; torchrun (RANK, WORLD_SIZE, MASTER_ADDR);
// srun (SLURM_PROCID, SLURM_NTASKS). If none has, the process is alone.
enum class StartUp : std::uint8_t { automatic, mpi, torchrun, slurm, single };

struct LaunchOptions {
  int ranks = 1;  // for the thread backend; other backends use the number of processes
  // OpenMP threads of a rank. 0: OMP_NUM_THREADS; if OMP_NUM_THREADS is not set, the number of cores in this rank's affinity
  // mask / the number of ranks that share these cores.
  int threads_per_rank = 0;
  std::chrono::milliseconds deadline = std::chrono::minutes(10);  // of every wait for other ranks
  Algorithm algorithm = Algorithm::automatic;
  ProgressMode progress = ProgressMode::thread;
  // Each rank records its calls in rank-<rank>.flight in this folder, for trireme-flight. Empty: in the folder that
  // TRIREME_FLIGHT_DIR names; if TRIREME_FLIGHT_DIR is not set, nothing is recorded.
  std::string flight_directory = {};
  StartUp start_up = StartUp::automatic;                       // nccl backend
  GpuCollectives gpu_collectives = GpuCollectives::automatic;  // nccl backend
};

// Runs `main` once on every rank with the world group and returns this process's exit code, which is the largest exit code of
// its ranks. If a rank throws, all other ranks throw Error{peer_failed} at their next wait. The first error is printed once.
// Its exit code is exit_code_of(code) for an Error (core/exit_code.hpp), 4 for std::bad_alloc, and 1 for other exceptions.
int launch(BackendKind backend, const LaunchOptions& options, const std::function<int(Group)>& main);

BackendKind parse_backend(std::string_view name);    // "thread", "mpi" or "nccl"
Algorithm parse_algorithm(std::string_view name);    // "automatic", "all_pairs", "direct", "ring", "halving_doubling"
ProgressMode parse_progress(std::string_view name);  // "thread" or "cooperative"
StartUp parse_start_up(std::string_view name);       // "automatic", "mpi", "torchrun", "slurm" or "single"

}  // namespace trireme
