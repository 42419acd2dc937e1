#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

template <typename T>
struct SoftmaxKernels {
  // log(sum(exp(x))) of one row.
  T (*log_sum_exp)(const T* x, std::int64_t count);
  // y = scale * exp(x - log_sum_exp); y may be x.
  void (*softmax)(const T* x, T log_sum_exp, T scale, T* y, std::int64_t count);
};

TRIREME_KERNEL_TABLE(KernelTable<SoftmaxKernels>, softmax_kernels)

}  // namespace trireme::ops
