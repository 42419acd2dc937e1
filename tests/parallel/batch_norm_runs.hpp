#pragma once

#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// Checks synchronised batch norm on these ranks and returns the errors; the same for threads and processes. Collective.
std::vector<std::string> batch_norm_problems(const Group& world);

}  // namespace trireme::tests
