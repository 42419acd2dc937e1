#pragma once

#include <cstdint>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/isa.hpp"

namespace trireme::ops {

// From float they round to the nearest, ties to even: the same bits as the classes bfloat16 and float16.
struct CastKernels {
  void (*from_bfloat16)(const bfloat16* x, float* y, std::int64_t count);
  void (*to_bfloat16)(const float* x, bfloat16* y, std::int64_t count);
  void (*from_float16)(const float16* x, float* y, std::int64_t count);
  void (*to_float16)(const float* x, float16* y, std::int64_t count);
};

TRIREME_KERNEL_TABLE(CastKernels, cast_kernels)

}  // namespace trireme::ops
