#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/core/shape.hpp"
#include "trireme/ops/pooling.hpp"

namespace trireme::ops {

// The pixels of one window along one dim that lie in the image, and its part of an average's divisor.
struct PoolSpan {
  std::int64_t begin;
  std::int64_t count;
  std::int64_t divisor;
};

// The windows of a pooling along both dims of the result.
struct PoolWindows {
  std::vector<PoolSpan> rows;
  std::vector<PoolSpan> columns;
  Extent2d dilation = 1;
};

// Those that take images of shape x to y. Throw Error when there are none; `op` names the operation in it.
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const Pool2dOptions& options);
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const AvgPool2dOptions& options);
PoolWindows adaptive_windows(std::string_view op, const Shape& x, const Shape& y);

}  // namespace trireme::ops
