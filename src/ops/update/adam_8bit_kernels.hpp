#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

namespace trireme::ops {

// Both take `count` elements from the start of a block or of a part of one. update() finds the largest magnitudes of the
// moments itself, block by block, where `absmax` is null. Otherwise all elements lie in one block, and `absmax` has its two:
// that of the first moment, then that of the second. measure() writes these two of its elements.
template <typename T>
struct Adam8bitKernels {
  void (*update)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, const float* absmax);
  void (*measure)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float* absmax);
};

TRIREME_KERNEL_TABLE(KernelTable<Adam8bitKernels>, adam_8bit_kernels)

}  // namespace trireme::ops
