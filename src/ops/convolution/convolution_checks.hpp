#pragma once

#include <string_view>

#include "ops/convolution/convolution_shape.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/convolution/convolution.hpp"

namespace trireme::ops {

// Throw Error for operands that do not fit; `op` names the operation in it.
ConvolutionShape convolution_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                   const Conv2dOptions& options);
// Of the convolution from y to x, whose backward pass the transposed one from x to y is.
ConvolutionShape transposed_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                  const ConvTranspose2dOptions& options);

}  // namespace trireme::ops
