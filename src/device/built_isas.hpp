#pragma once

#include <span>

#include "trireme/device/isa.hpp"

namespace trireme::device {

// The instruction sets that this build has kernels for (cmake/TriremeKernels.cmake), ascending.
std::span<const Isa> built_isas();

}  // namespace trireme::device
