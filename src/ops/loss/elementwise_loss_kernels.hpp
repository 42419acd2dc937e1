#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

template <typename A>
struct ElementwiseLossOf;

template <typename T>
struct ElementwiseLossKernels {
  double (*sum)(const ElementwiseLossOf<T>& loss, const T* x, const T* target, std::int64_t count);
  void (*backward)(const ElementwiseLossOf<T>& loss, const T* x, const T* target, T scale, T* dx, std::int64_t count,
                   bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<ElementwiseLossKernels>, elementwise_loss_kernels)

}  // namespace trireme::ops
