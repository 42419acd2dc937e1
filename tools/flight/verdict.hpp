#pragma once

#include <string>
#include <vector>

#include "job.hpp"

// One problem.
struct Finding {
  std::string kind;        // "vanished", "failed", "mismatch", "left early", "stopped", "behind", "circle", "missing"
  std::vector<int> ranks;  // the ranks that caused it
  std::string text;
};

// The problems of the job, the likely cause first. Empty: none.
std::vector<Finding> find_causes(const Job& job);

// #42 all_reduce(sum, 1024 x float32) "layer.0.weight" of group "world"
std::string describe(const RankView& view, const trireme::comm::FlightEntry& entry);
