#pragma once

#include "trireme/autograd/tape.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme {

// Without a tape, linear layers compute for inference.
inline ops::LinearUse linear_use() { return Tape::current() == nullptr ? ops::LinearUse::inference : ops::LinearUse::training; }

}  // namespace trireme
