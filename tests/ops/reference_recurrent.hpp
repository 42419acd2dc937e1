#pragma once

#include "ops/reference_fixture.hpp"

namespace trireme::ops {

// The recurrent modules of nn, with all their gradients.
bool run_lstm(OpFixture& fixture);
bool run_gru(OpFixture& fixture);

}  // namespace trireme::ops
