#pragma once

#include <functional>
#include <span>

#include "trireme/comm/base/group.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace trireme::test {

// What every backend must do, with any number of ranks: collectives_cases(), and what a Group alone has. A check throws where
// it is not met.
struct ConformanceCase {
  const char* name;
  std::function<void(const Group& world)> check;
};
std::span<const ConformanceCase> conformance_cases();

// What every backend must do when something goes wrong. `check` runs on every rank and ends as the case demands: launch must
// return `exit_code`.
struct FailureCase {
  const char* name;
  int least_ranks;
  int exit_code;
  std::chrono::milliseconds deadline;
  int (*run)(const Group& world);
};
std::span<const FailureCase> failure_cases();

}  // namespace trireme::test
