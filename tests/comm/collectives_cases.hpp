#pragma once

#include <span>

#include "trireme/core/collectives.hpp"

namespace trireme::test {

// What all Collectives must do, a fake that has start() alone too. A check throws where it is not met.
struct CollectivesCase {
  const char* name;
  void (*check)(const Collectives& ranks);
};
std::span<const CollectivesCase> collectives_cases();

}  // namespace trireme::test
