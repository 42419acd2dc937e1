#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// For the rms norm, which has no mean and no bias, bias and mean are null.
template <typename T>
struct NormRows {
  const T* x;
  const T* residual;  // may be null, like weight and bias
  const T* weight;
  const T* bias;
  T epsilon;
  T* x_sum;
  T* y;
  T* mean;
  T* rstd;
  std::int64_t width;
};

template <typename T>
struct NormGradientRows {
  const T* x;
  const T* weight;  // may be null
  const T* mean;
  const T* rstd;
  const T* dy;
  T* dx;
  bool accumulate_dx;
  std::int64_t width;
};

template <typename T>
struct NormPasses {
  void (*forward)(const NormRows<T>& pass, std::int64_t begin, std::int64_t end);
  // Also adds the gradients of weight and bias for these rows to dweight and dbias. The rms norm does not write dbias.
  void (*backward)(const NormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight, T* dbias);
};

template <typename T>
struct NormKernels {
  NormPasses<T> layer_norm;
  NormPasses<T> rms_norm;
};

TRIREME_KERNEL_TABLE(KernelTable<NormKernels>, norm_kernels)

}  // namespace trireme::ops
