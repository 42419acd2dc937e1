#pragma once

#include <span>
#include <string>

#include "gradient_sets.hpp"
#include "trireme/comm/group.hpp"

struct HookedStepOptions {
  std::string hook;  // its name: parallel::parse_compression; "none" too
  double cap = 0;    // of a bucket, bytes
  double backward_seconds = 0;
  int rounds = 5;
};

struct HookedStep {
  double seconds = 0;         // median over the rounds of the slowest rank's
  double megabytes_sent = 0;  // to other nodes by rank 0, a step
};

// A simulated backward pass whose gradients DataParallel sums by a communication hook: between nodes where there are several,
// otherwise between ranks. Collective.
HookedStep time_hooked_step(const trireme::Group& world, std::span<const GradientSize> gradients,
                            const HookedStepOptions& options);
