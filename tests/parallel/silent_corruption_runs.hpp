#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"

// Training with silent faults, on meshes that use all ranks of the world.
namespace trireme::tests {

struct SilentFault {
  std::string what;
  std::function<void(const Group&)> expect_found;  // throws unless the library finds it and all ranks say the same; collective
};

enum class Culprits : std::uint8_t { one, every };  // the ranks of a mesh on which it goes wrong, each in a training of its own

// A bit of one rank's values is flipped. 2, 3, 4, 6 or 8 ranks.
std::vector<SilentFault> turned_bits(int ranks, Culprits culprits);

// A loss, or a gradient, is nan or inf on one rank.
std::vector<SilentFault> steps_that_are_not_finite(int ranks, Culprits culprits);

}  // namespace trireme::tests
