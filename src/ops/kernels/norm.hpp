#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

template <typename T>
struct LayerNormRows {
  const T* x;
  const T* residual;  // may be null, as weight and bias
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
struct LayerNormGradientRows {
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
struct NormKernels {
  void (*layer_norm)(const LayerNormRows<T>& pass, std::int64_t begin, std::int64_t end);
  // Also adds the rows' part of the gradients of weight and bias to dweight and dbias.
  void (*layer_norm_backward)(const LayerNormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight, T* dbias);
};

TRIREME_KERNEL_TABLE(KernelTable<NormKernels>, norm_kernels)

}  // namespace trireme::ops
