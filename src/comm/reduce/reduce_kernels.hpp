#pragma once

#include <cstddef>

#include "trireme/device/isa.hpp"

namespace trireme::comm {

// Reduces `count` elements of all `from` into every `to`, in a fixed tree: reduces the first 2^k of `from`, with the largest k
// that leaves some, then the rest, and combines the two results. A `to` may be a `from`; otherwise they don't overlap.
using ReduceKernel = void (*)(const void* const* from, std::size_t sources, void* const* to, std::size_t targets,
                              std::size_t count);

using DivideKernel = void (*)(void* data, std::size_t count, int divisor);

struct ReduceKernelsOfType {
  ReduceKernel sum;
  ReduceKernel min;
  ReduceKernel max;
  ReduceKernel mean;
  DivideKernel divide;
};

struct ReduceKernels {
  ReduceKernelsOfType float32;
  ReduceKernelsOfType float64;
  ReduceKernelsOfType int32;
  ReduceKernelsOfType int64;
  ReduceKernelsOfType uint64;
  ReduceKernelsOfType bfloat16;
  ReduceKernelsOfType float16;
};

TRIREME_KERNEL_TABLE(ReduceKernels, reduce_kernels)

}  // namespace trireme::comm
