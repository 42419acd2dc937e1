#pragma once

#include <string_view>

#include "ops/convolution/convolution_shape.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/convolution/convolution.hpp"

namespace trireme::ops {

// Both throw Error for operands that do not fit; `op` names the operation in the message.
ConvolutionShape convolution_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                   const Conv2dOptions& options);
// The shape of the convolution from y to x. The transposed convolution from x to y is its backward pass.
ConvolutionShape transposed_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                  const ConvTranspose2dOptions& options);

}  // namespace trireme::ops
