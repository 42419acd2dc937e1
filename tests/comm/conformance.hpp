#pragma once

#include <functional>
#include <span>

#include "trireme/comm/base/group.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace trireme::test {

// Checks for every backend, with any number of ranks: collectives_cases(), and cases for what only a Group has. A check that
// fails throws.
struct ConformanceCase {
  const char* name;
  std::function<void(const Group& world)> check;
};
std::span<const ConformanceCase> conformance_cases();

// Checks for every backend of failures. `check` runs on every rank and ends as the case demands: launch must
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
