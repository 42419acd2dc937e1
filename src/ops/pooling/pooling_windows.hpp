#pragma once

#include <string_view>

#include "ops/pooling/pooling_dims.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/pooling/pooling.hpp"

namespace trireme::ops {

// Those that take images of shape x to y, each with a pixel at least. Throw Error when there are none; `op` names the operation
// in it.
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const Pool2dOptions& options);
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const AvgPool2dOptions& options);
PoolWindows adaptive_windows(std::string_view op, const Shape& x, const Shape& y);

// Throws Error where a window has more pixels than PoolArgmax counts.
void require_places(std::string_view op, const PoolWindows& windows);

}  // namespace trireme::ops
