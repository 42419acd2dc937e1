#pragma once

#include <string_view>

#include "ops/pooling/pooling_dims.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/pooling/pooling.hpp"

namespace trireme::ops {

// The windows of a pooling from images of shape x to y, each with at least one pixel. Throw Error if the shapes do not fit;
// `op` names the operation in the message.
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const Pool2dOptions& options);
PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const AvgPool2dOptions& options);
PoolWindows adaptive_windows(std::string_view op, const Shape& x, const Shape& y);

// Throws Error if a window has too many pixels for PoolArgmax.
void require_places(std::string_view op, const PoolWindows& windows);

}  // namespace trireme::ops
