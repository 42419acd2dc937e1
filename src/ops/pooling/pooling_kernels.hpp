#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// The pixels of one window that are in the image. Strides are in elements; the channels of a pixel are contiguous.
struct PoolWindow {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;
  std::int64_t channels;
};

template <typename T>
struct PoolingKernels {
  // For each channel, the largest element and the index of its pixel.
  void (*max)(const PoolWindow& window, const T* x, T* y, std::int32_t* argmax);
  // dx[argmax] += dy.
  void (*max_backward)(const PoolWindow& window, const T* dy, const std::int32_t* argmax, T* dx);
  // y = scale * the sum over the window.
  void (*average)(const PoolWindow& window, const T* x, T scale, T* y);
  // dx += scale * dy for each pixel.
  void (*average_backward)(const PoolWindow& window, const T* dy, T scale, T* dx);
};

TRIREME_KERNEL_TABLE(KernelTable<PoolingKernels>, pooling_kernels)

}  // namespace trireme::ops
