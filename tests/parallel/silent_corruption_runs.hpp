#pragma once

#include "trireme/comm/group.hpp"

// Training in which something goes wrong without a word, on meshes that use all ranks of the world. Each throws unless the
// library finds it and all ranks say the same. Collective.
namespace trireme::tests {

// A bit of one rank's values is turned over.
void expect_differing_replicas_found(const Group& world);

// A loss, or what backward makes of it, is nan or inf on one rank.
void expect_steps_that_are_not_finite_left_out(const Group& world);

}  // namespace trireme::tests
