#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "ops/elementwise/dropout_body.hpp"

namespace trireme::ops {

template <typename T>
struct DropoutKernels {
  // y = factor * x where kept, 0 elsewhere.
  void (*dropout)(const T* x, T factor, const DropoutNumbers& numbers, T* y, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<DropoutKernels>, dropout_kernels)

}  // namespace trireme::ops
