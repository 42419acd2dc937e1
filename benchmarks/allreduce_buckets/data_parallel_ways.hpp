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

// A model of two branches that are registered in the other order than backward goes through them: buckets reduced in the order
// of the store and in the ready order, for each size. Collective.
void compare_ready_order(const trireme::Group& world, std::span<const GradientSize> gradients, const WaysOptions& options);
