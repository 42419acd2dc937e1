#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradient_sets.hpp"
#include "trireme/comm/base/group.hpp"

struct WaysOptions {
  std::string model;  // its name
  double backward_seconds = 0;
  std::vector<double> bucket_mib;  // fixed sizes; 0: one bucket
  int rounds = 5;
  std::string profile;  // Tuning::profile
  std::string json;     // file for the results
};

// Steps of DataParallel with each fixed size, with its default sizes and with the buckets that its tuner finds. Collective.
void compare_tuned(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options);

// Steps of a model with two branches that backward goes through in another order than the store's: buckets are reduced in the
// order of the store and in the order in which they are ready, for each size. Collective.
void compare_ready_order(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options);
