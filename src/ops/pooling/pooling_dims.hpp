#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

inline constexpr std::int64_t most_pool_pixels = 1 << 29;

// a / b of numbers that are not negative; most divisors are 1.
TRIREME_HOST_DEVICE std::int32_t quotient(std::int32_t a, std::int32_t b) {
  return b == 1 ? a : static_cast<std::int32_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
}

// The pixels of a window, along one dim, that are in the image, and this dim's factor of the divisor of an average.
struct PoolSpan {
  std::int32_t begin;
  std::int32_t count;
  std::int32_t divisor;
};

// The windows of a pooling along one dim. Numbers are below most_pool_pixels: a GPU divides 32 bits several times as fast as
// 64.
struct PoolDim {
  std::int32_t size;  // pixels
  std::int32_t windows;
  std::int32_t kernel = 0;  // 0: adaptive windows, which ignore the fields below
  std::int32_t stride = 1;
  std::int32_t padding = 0;
  std::int32_t dilation = 1;
  bool count_include_pad = false;

  TRIREME_HOST_DEVICE PoolSpan span(std::int32_t window) const {
    if (kernel == 0) {
      const std::int32_t begin = scaled(window, size, windows);
      const std::int32_t count = scaled(window + 1, size, windows, windows - 1) - begin;
      return {begin, count, count};
    }
    const std::int32_t first = window * stride - padding;
    const std::int32_t before = first < 0 ? quotient(dilation - 1 - first, dilation) : 0;
    const std::int32_t begin = first + before * dilation;
    const std::int32_t count = least(kernel - before, quotient(size - begin + dilation - 1, dilation));
    return {begin, count, count_include_pad ? least(kernel, size + padding - first) : count};
  }

  // The windows [first_window, end_window) span this pixel. With a dilation the pixel may lie between those of a window.
  TRIREME_HOST_DEVICE std::int32_t first_window(std::int32_t pixel) const {
    if (kernel == 0) return scaled(pixel, windows, size);
    const std::int32_t room = pixel + padding - dilation * (kernel - 1);
    return room <= 0 ? 0 : quotient(room + stride - 1, stride);
  }
  TRIREME_HOST_DEVICE std::int32_t end_window(std::int32_t pixel) const {
    if (kernel == 0) return scaled(pixel + 1, windows, size, size - 1);
    return least(windows, quotient(pixel + padding, stride) + 1);
  }

  // The index of a pixel among those of a window, or -1.
  TRIREME_HOST_DEVICE std::int32_t place(const PoolSpan& span, std::int32_t pixel) const {
    const std::int32_t distance = pixel - span.begin;
    if (distance < 0) return -1;
    const std::int32_t number = quotient(distance, dilation);
    return number * dilation == distance && number < span.count ? number : -1;
  }

 private:
  TRIREME_HOST_DEVICE static std::int32_t scaled(std::int32_t a, std::int32_t b, std::int32_t divisor,
                                                 std::int32_t addend = 0) {
    return static_cast<std::int32_t>((std::int64_t{a} * b + addend) / divisor);
  }
  TRIREME_HOST_DEVICE static std::int32_t least(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
};

struct PoolWindows {
  PoolDim rows;
  PoolDim columns;
};

}  // namespace trireme::ops
