#pragma once

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Tags that say where a tensor's elements live, and where operations on it run.
struct Cpu {};
struct Cuda {};  // this thread's NVIDIA GPU: device/cuda.hpp

}  // namespace trireme
