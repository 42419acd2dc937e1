#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// Elements lie in lines of `width` columns, of which the last may be shorter; each column has coefficients of its own.
template <typename T>
struct NormalizedLines {
  const T* x;
  const T* center;
  const T* scale;
  const T* shift;
  const T* residual;  // may be null
  bool relu;
  T* y;
};

template <typename T>
struct GradientLines {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  const T* center;
  const T* dy_scale;
  const T* x_scale;
  const T* shift;
  T* dx;
  bool accumulate_dx;
  T* dresidual;  // may be null
};

template <typename T>
struct ChannelKernels {
  // Adds x and its squares to sums [2 * width].
  void (*add_moments)(const T* x, std::int64_t count, std::int64_t width, double* sums);
  // y = (x - center) * scale + shift, + residual, ReLU.
  void (*normalize)(const NormalizedLines<T>& pass, std::int64_t count, std::int64_t width);
  // Adds dy, where y > 0, and dy * (x - center) to sums [2 * width].
  void (*add_gradients)(const GradientLines<T>& pass, std::int64_t count, std::int64_t width, double* sums);
  // dx = dy * dy_scale + (x - center) * x_scale + shift; dresidual = dy; both where y > 0.
  void (*gradients)(const GradientLines<T>& pass, std::int64_t count, std::int64_t width);
};

TRIREME_KERNEL_TABLE(KernelTable<ChannelKernels>, channel_kernels)

}  // namespace trireme::ops
