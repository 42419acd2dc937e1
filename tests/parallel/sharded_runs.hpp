#pragma once

#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// Trains models with sharded and with replicated steps on all ranks and returns the errors of this one. Collective.
std::vector<std::string> sharded_step_problems(const Group& world);

// Only some combinations of settings: for processes, whose collectives take long.
std::vector<std::string> sharded_step_problems_in_pairs(const Group& world);

}  // namespace trireme::tests
