#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// Activations with parameters: loops over `count` contiguous elements; the output may be an input.
template <typename T>
struct ParametricKernels {
  void (*leaky_relu)(const T* x, T slope, T* y, std::int64_t count);
  void (*leaky_relu_backward)(const T* x, T slope, const T* dy, T* dx, std::int64_t count, bool accumulate);
  void (*softplus)(const T* x, T beta, T threshold, T* y, std::int64_t count);
  void (*softplus_backward)(const T* x, T beta, T threshold, const T* dy, T* dx, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<ParametricKernels>, parametric_kernels)

}  // namespace trireme::ops
