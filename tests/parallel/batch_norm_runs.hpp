#pragma once

#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// What is wrong with synchronised batch norm on these ranks; the same work for threads and processes. Collective.
std::vector<std::string> batch_norm_problems(const Group& world);

}  // namespace trireme::tests
