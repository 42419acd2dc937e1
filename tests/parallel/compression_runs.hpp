#pragma once

#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// Trains on written gradients with every hook, between the nodes of this world and between its ranks; returns the errors.
std::vector<std::string> compression_problems(const Group& world);

}  // namespace trireme::tests
