#pragma once

#include "trireme/comm/base/group.hpp"

namespace trireme::tests {

// Trains a float16 model whose gradient overflows on the last rank in one step, with sharded and with replicated steps.
// Throws on all ranks unless all of them skip exactly that step. Collective.
void expect_all_skip_the_overflow(const Group& world);

}  // namespace trireme::tests
