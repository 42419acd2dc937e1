#include "ops/kernels/pooling.hpp"

#include "trireme/core/host_device.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Calls body(offset, number) for the pixels of a window in row-major order.
template <typename Body>
TRIREME_HOST_DEVICE void for_each_pixel(const PoolWindow& window, Body body) {
  std::int64_t number = 0;
  for (std::int64_t row = 0; row < window.rows; ++row) {
    for (std::int64_t column = 0; column < window.columns; ++column, ++number) {
      body(row * window.row_stride + column * window.column_stride, number);
    }
  }
}

template <typename T>
void max(const PoolWindow& window, const T* x, T* y, std::uint16_t* argmax) {
  const std::int64_t channels = window.channels;
  for_each_pixel(window, [=](std::int64_t offset, std::int64_t number) {
    const T* pixel = x + offset;
    if (number == 0) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        y[c] = pixel[c];
        argmax[c] = 0;
      }
      return;
    }
    const auto place = static_cast<std::uint16_t>(number);
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const bool larger = (pixel[c] > y[c]) | (pixel[c] != pixel[c]);
      y[c] = larger ? pixel[c] : y[c];
      argmax[c] = larger ? place : argmax[c];
    }
  });
}

template <typename T>
void max_backward(const PoolWindow& window, const T* dy, const std::uint16_t* argmax, T* dx) {
  const std::int64_t channels = window.channels;
  for_each_pixel(window, [=](std::int64_t offset, std::int64_t number) {
    T* pixel = dx + offset;
    const auto place = static_cast<std::uint16_t>(number);
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) pixel[c] += argmax[c] == place ? dy[c] : T(0);
  });
}

template <typename T>
void average(const PoolWindow& window, const T* x, T scale, T* y) {
  const std::int64_t channels = window.channels;
  for_each_pixel(window, [=](std::int64_t offset, std::int64_t number) {
    const T* pixel = x + offset;
    if (number == 0) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) y[c] = pixel[c];
      return;
    }
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) y[c] += pixel[c];
  });
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) y[c] *= scale;
}

template <typename T>
void average_backward(const PoolWindow& window, const T* dy, T scale, T* dx) {
  const std::int64_t channels = window.channels;
  for_each_pixel(window, [=](std::int64_t offset, std::int64_t) {
    T* pixel = dx + offset;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) pixel[c] += scale * dy[c];
  });
}

template <typename T>
constexpr PoolingKernels<T> kernels{max<T>, max_backward<T>, average<T>, average_backward<T>};

}  // namespace

const KernelTable<PoolingKernels> pooling_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
