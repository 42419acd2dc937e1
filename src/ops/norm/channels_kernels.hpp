#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// Elements are in lines of `width` columns; the last line may be shorter. Each column has its own coefficients.
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

// Where dy counts: with ReLU where y is above 0; if y is null, where the normalised x is above 0.
template <typename T>
struct PassedLines {
  const T* x;
  const T* dy;
  bool relu;
  const T* y;
  const T* center;
  const T* scale;
  const T* shift;
};

template <typename T>
struct GradientLines {
  PassedLines<T> of;
  const T* x_scale;
  const T* shift;
  T* dx;
  bool accumulate_dx;
};

template <typename T>
struct ChannelKernels {
  // Adds x and its squares to sums [2 * width].
  void (*add_moments)(const T* x, std::int64_t count, std::int64_t width, double* sums);
  // y = (x - center) * scale + shift, + residual, ReLU.
  void (*normalize)(const NormalizedLines<T>& pass, std::int64_t count, std::int64_t width);
  // Adds dy and dy * (x - center) to sums [2 * width]; `passed`, which may be null, becomes dy. dy is taken as 0 where it does
  // not count.
  void (*add_gradients)(const PassedLines<T>& of, T* passed, std::int64_t count, std::int64_t width, double* sums);
  // dx = dy * scale + (x - center) * x_scale + shift, with dy taken as 0 where it does not count.
  void (*gradients)(const GradientLines<T>& pass, std::int64_t count, std::int64_t width);
};

TRIREME_KERNEL_TABLE(KernelTable<ChannelKernels>, channel_kernels)

}  // namespace trireme::ops
