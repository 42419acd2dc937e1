#pragma once

#include <cstdint>

#include "ops/bodies/dropout.hpp"
#include "ops/kernels/table.hpp"

namespace trireme::ops {

template <typename T>
struct DropoutKernels {
  // y = factor * x where kept, 0 elsewhere.
  void (*dropout)(const T* x, T factor, const DropoutNumbers& numbers, T* y, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<DropoutKernels>, dropout_kernels)

}  // namespace trireme::ops
