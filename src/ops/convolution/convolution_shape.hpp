#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/ops/base/extent2d.hpp"

namespace trireme::ops {

// All that a convolution and its two gradients depend on, except the values of their operands.
struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t groups = 1;
  Extent2d x;
  Extent2d y;
  Extent2d kernel;
  Extent2d stride;
  Extent2d padding;
  Extent2d dilation;
  bool bias = false;                // always float32, as the gradient of the weight
  DType operands = DType::float32;  // of x, y and the weight; also bfloat16

  auto operator<=>(const ConvolutionShape&) const = default;

  // Whether each pixel of y depends on one pixel of x alone, with all its channels.
  bool is_1x1() const { return groups == 1 && kernel == Extent2d(1) && padding == Extent2d(0); }
  // Whether the result is the product of pixels [rows, in] and weight [out, in]^T.
  bool is_product() const { return is_1x1() && stride == Extent2d(1); }
};

}  // namespace trireme::ops
