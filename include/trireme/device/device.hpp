#pragma once

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Tags for the device of a tensor: where its elements lie and where its operations run.
struct Cpu {};
struct Cuda {};  // this thread's NVIDIA GPU: device/cuda.hpp

}  // namespace trireme
