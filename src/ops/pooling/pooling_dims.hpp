#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// The pixels of one window along one dim that lie in the image, and its part of an average's divisor.
struct PoolSpan {
  std::int64_t begin;
  std::int64_t count;
  std::int64_t divisor;
};

// The windows of a pooling along one dim.
struct PoolDim {
  std::int64_t size;  // pixels
  std::int64_t windows;
  std::int64_t kernel = 0;  // 0: adaptive windows, for which the rest means nothing
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool count_include_pad = false;

  TRIREME_HOST_DEVICE PoolSpan span(std::int64_t window) const {
    if (kernel == 0) {
      const std::int64_t begin = window * size / windows;
      const std::int64_t count = ((window + 1) * size + windows - 1) / windows - begin;
      return {begin, count, count};
    }
    const std::int64_t first = window * stride - padding;
    const std::int64_t before = first < 0 ? (dilation - 1 - first) / dilation : 0;
    const std::int64_t begin = first + before * dilation;
    const std::int64_t count = least(kernel - before, (size - begin + dilation - 1) / dilation);
    return {begin, count, count_include_pad ? least(kernel, size + padding - first) : count};
  }

  // The windows [first_window, end_window) span a pixel, which with a dilation may lie between theirs.
  TRIREME_HOST_DEVICE std::int64_t first_window(std::int64_t pixel) const {
    if (kernel == 0) return pixel * windows / size;
    const std::int64_t room = pixel + padding - dilation * (kernel - 1);
    return room <= 0 ? 0 : (room + stride - 1) / stride;
  }
  TRIREME_HOST_DEVICE std::int64_t end_window(std::int64_t pixel) const {
    if (kernel == 0) return ((pixel + 1) * windows + size - 1) / size;
    return least(windows, (pixel + padding) / stride + 1);
  }

  // The number of a pixel among those of a window, or -1.
  TRIREME_HOST_DEVICE std::int64_t place(const PoolSpan& span, std::int64_t pixel) const {
    const std::int64_t distance = pixel - span.begin;
    const std::int64_t number = distance / dilation;
    return distance >= 0 && distance % dilation == 0 && number < span.count ? number : -1;
  }

 private:
  TRIREME_HOST_DEVICE static std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
};

// The windows of a pooling along both dims of the result.
struct PoolWindows {
  PoolDim rows;
  PoolDim columns;
};

}  // namespace trireme::ops
