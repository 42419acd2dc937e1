#pragma once

#include <functional>
#include <memory>

#include "comm/base/backend.hpp"
#include "comm/launch/job_place.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace trireme::comm {

int launch_threads(const LaunchOptions& options, const std::function<int(Group)>& main);
int launch_alone(const LaunchOptions& options, const std::function<int(Group)>& main);  // one rank, on this thread
int launch_mpi(const LaunchOptions& options, const std::function<int(Group)>& main);    // throws in a build without MPI

int launch_tcp(const LaunchOptions& options, const JobPlace& place, const std::function<int(Group)>& main);
int launch_nccl(const LaunchOptions& options, const std::function<int(Group)>& main);  // throws without CUDA

// Runs `main` on one rank, records and reports its failure, and returns the exit code.
int run_rank(RankContext& context, std::shared_ptr<Backend> world, const std::function<int(Group)>& main);

}  // namespace trireme::comm
