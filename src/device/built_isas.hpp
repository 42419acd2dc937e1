#pragma once

#include <span>

#include "trireme/device/isa.hpp"

namespace trireme::device {

// Those that this build has kernels for (cmake/TriremeKernels.cmake), least first.
std::span<const Isa> built_isas();

}  // namespace trireme::device
