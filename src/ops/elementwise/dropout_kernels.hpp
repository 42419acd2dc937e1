#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "ops/elementwise/dropout_body.hpp"

namespace trireme::ops {

template <typename T>
struct DropoutKernels {
  // y = factor * x for kept elements, 0 * x for the others.
  void (*dropout)(const T* x, T factor, const DropoutNumbers& numbers, T* y, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<DropoutKernels>, dropout_kernels)

}  // namespace trireme::ops
