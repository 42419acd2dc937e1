#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

namespace trireme::ops {

// Of `count` elements that begin with a block. With `absmax`, a pair, they lie in one block, which it is of.
template <typename T>
struct Adam8bitKernels {
  void (*update)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, const float* absmax);
  void (*measure)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float* absmax);
};

TRIREME_KERNEL_TABLE(KernelTable<Adam8bitKernels>, adam_8bit_kernels)

}  // namespace trireme::ops
