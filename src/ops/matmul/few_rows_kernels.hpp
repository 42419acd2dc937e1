#pragma once

#include <cstdint>

#include "trireme/core/bfloat16.hpp"
#include "trireme/device/isa.hpp"

namespace trireme::ops {

// sums[rows, columns] += a[rows, depth] b[columns, depth]^T, in the order of the depth. There are at most most_rows rows and
// most_columns columns. B: float or bfloat16.
template <typename B>
struct FewRows {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  const float* a;
  std::int64_t a_stride;
  const B* b;
  std::int64_t b_stride;
  const B* ahead;  // columns to prefetch, b_stride apart; may be null
  float* sums;     // rows most_columns apart
};

struct FewRowsKernels {
  std::int64_t most_rows;
  std::int64_t most_columns;
  void (*multiply)(const FewRows<float>& product);
  void (*multiply_bfloat16)(const FewRows<bfloat16>& product);
  // sums = a b^T for any number of columns, with rows c_stride apart. Each element of a vector has a partial sum. The bits of a
  // sum depend on its row of a, its column of b and the instruction set alone.
  void (*multiply_partially)(const FewRows<float>& product, std::int64_t c_stride);
};

TRIREME_KERNEL_TABLE(FewRowsKernels, few_rows_kernels)

}  // namespace trireme::ops
