#pragma once

#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// Trains with communication hooks, where owners update and where every rank does, and returns the errors of this rank.
// Collective.
std::vector<std::string> hooked_sharding_problems(const Group& world);

}  // namespace trireme::tests
