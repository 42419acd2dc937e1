#pragma once

#include "ops/reference_fixture.hpp"

namespace trireme::ops {

// The recurrent modules of nn, with all their gradients.
void run_lstm(OpFixture& fixture);
void run_gru(OpFixture& fixture);

}  // namespace trireme::ops
