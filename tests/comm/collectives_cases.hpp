#pragma once

#include <span>

#include "trireme/core/collectives.hpp"

namespace trireme::test {

// Checks for all Collectives, also for a fake that has only start(). A check that fails throws.
struct CollectivesCase {
  const char* name;
  void (*check)(const Collectives& ranks);
};
std::span<const CollectivesCase> collectives_cases();

}  // namespace trireme::test
