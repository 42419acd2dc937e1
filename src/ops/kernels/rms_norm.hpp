#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

template <typename T>
struct RmsNormRows {
  const T* x;
  const T* residual;  // may be null, as weight
  const T* weight;
  T epsilon;
  T* x_sum;
  T* y;
  T* rstd;
  std::int64_t width;
};

template <typename T>
struct RmsNormGradientRows {
  const T* x;
  const T* weight;  // may be null
  const T* rstd;
  const T* dy;
  T* dx;
  bool accumulate_dx;
  std::int64_t width;
};

template <typename T>
struct RmsNormKernels {
  void (*rms_norm)(const RmsNormRows<T>& pass, std::int64_t begin, std::int64_t end);
  // Also adds the rows' part of the gradient of weight to dweight.
  void (*rms_norm_backward)(const RmsNormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight);
};

TRIREME_KERNEL_TABLE(KernelTable<RmsNormKernels>, rms_norm_kernels)

}  // namespace trireme::ops
