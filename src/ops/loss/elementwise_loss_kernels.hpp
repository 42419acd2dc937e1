#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

enum class ElementwiseLoss : std::uint8_t;

template <typename T>
struct ElementwiseLossKernels {
  double (*sum)(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, std::int64_t count);
  void (*backward)(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, T scale, T* dx, std::int64_t count,
                   bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<ElementwiseLossKernels>, elementwise_loss_kernels)

}  // namespace trireme::ops
