#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

namespace trireme::ops {

// Both take `count` elements, which begin at the start of a block or of a part of a block. If `absmax` is null, update()
// computes the largest magnitudes of each block. Otherwise all elements are in one block, and `absmax` has the largest
// magnitudes of its first and second moments. measure() writes these two for its elements.
template <typename T>
struct Adam8bitKernels {
  void (*update)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, const float* absmax);
  void (*measure)(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float* absmax);
};

TRIREME_KERNEL_TABLE(KernelTable<Adam8bitKernels>, adam_8bit_kernels)

}  // namespace trireme::ops
