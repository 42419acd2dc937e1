#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

inline constexpr std::int64_t sum_block = 4096;  // elements of a partial sum

template <typename T>
struct ReduceKernels {
  // columns[j] = sum over rows of x[row * stride + j], j < width.
  void (*sum_rows)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* columns, bool accumulate);
  // For at most sum_block elements, in double.
  double (*sum_of_squares)(const T* x, std::int64_t count);
};

TRIREME_KERNEL_TABLE(KernelTable<ReduceKernels>, reduce_kernels)

}  // namespace trireme::ops
