#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradient_sets.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"

struct SweepOptions {
  std::vector<double> bucket_mib;  // caps; 0: one bucket
  double backward_seconds = -1;    // simulated; below 0: as long as the reduction of one bucket takes
  int rounds = 15;
  std::vector<std::string> hooks = {};  // compressions to try, for parallel::parse_compression
};

// One bucket size, medians over the rounds; each time is the slowest rank's.
struct Row {
  std::string name;       // "25 MiB", "one bucket", "solved"
  double bucket_mib = 0;  // its cap; 0: none
  trireme::parallel::BucketCuts cuts;
  double group_seconds = 0;      // all buckets, without a backward pass
  double mpi_seconds = 0;        // the same through MPI_Allreduce
  double step_seconds = 0;       // simulated backward with the buckets' reductions beside it
  std::vector<double> steps;     // the same, by round
  double exposed_seconds = 0;    // the part of the step beyond the backward pass alone
  double predicted_seconds = 0;  // exposed_seconds by the fitted cost
  double megabytes_sent = 0;     // to other nodes by rank 0, a step
};

struct HookedStep {
  double seconds = 0;
  double megabytes_sent = 0;  // to other nodes by rank 0, a step
};

// A compression, or "none", with each bucket size, "solved" left out.
struct HookRows {
  std::string hook;
  std::vector<HookedStep> steps;  // by row
};

struct Sweep {
  std::vector<Row> rows;
  std::vector<HookRows> hooks = {};  // "none" first, where there are any
  double bytes = 0;                  // of all gradients
  double backward_seconds = 0;       // alone
  trireme::parallel::ReductionCost cost;
  bool shares_cores = false;  // there are more ranks than cores
};

constexpr double default_bucket_mib = 25;  // of DataParallel; the sweep has it always

// Collective. The same result on all ranks.
Sweep sweep(const trireme::Group& world, std::span<const GradientSize> gradients, const SweepOptions& options);
