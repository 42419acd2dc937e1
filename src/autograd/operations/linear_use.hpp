#pragma once

#include "trireme/autograd/tape.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme {

// What is computed without a tape is not learnt from.
inline ops::LinearUse linear_use() { return Tape::current() == nullptr ? ops::LinearUse::inference : ops::LinearUse::training; }

}  // namespace trireme
