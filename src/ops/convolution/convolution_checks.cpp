#include "ops/convolution/convolution_checks.hpp"

#include "ops/base/check.hpp"

namespace trireme::ops {

Extent2d conv2d_extent(const Extent2d& input, const Extent2d& kernel, const Conv2dOptions& options) {
  const auto along = [](std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t padding,
                        std::int64_t dilation) {
    require(stride > 0 && dilation > 0 && padding >= 0, "conv2d: stride {}, dilation {} and padding {} need to be >= 1, 1, 0",
            stride, dilation, padding);
    const std::int64_t room = size + 2 * padding - dilation * (taps - 1) - 1;
    require(room >= 0, "conv2d: a kernel of {} with dilation {} does not fit {} pixels with padding {}", taps, dilation, size,
            padding);
    return room / stride + 1;
  };
  return {
      along(input.height, kernel.height, options.stride.height, options.padding.height, options.dilation.height),
      along(input.width, kernel.width, options.stride.width, options.padding.width, options.dilation.width),
  };
}

Extent2d conv_transpose2d_extent(const Extent2d& input, const Extent2d& kernel, const ConvTranspose2dOptions& options) {
  const auto along = [](std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t padding, std::int64_t extra,
                        std::int64_t dilation) {
    require(stride > 0 && dilation > 0 && padding >= 0,
            "conv_transpose2d: stride {}, dilation {} and padding {} need to be >= 1, 1, 0", stride, dilation, padding);
    require(extra >= 0 && extra < stride, "conv_transpose2d: an output padding of {} needs to be below the stride of {}", extra,
            stride);
    const std::int64_t extent = (size - 1) * stride - 2 * padding + dilation * (taps - 1) + extra + 1;
    require(size > 0 && extent > 0, "conv_transpose2d: {} pixels, a kernel of {} with dilation {} and padding {} leave nothing",
            size, taps, dilation, padding);
    return extent;
  };
  return {
      along(input.height, kernel.height, options.stride.height, options.padding.height, options.output_padding.height,
            options.dilation.height),
      along(input.width, kernel.width, options.stride.width, options.padding.width, options.output_padding.width,
            options.dilation.width),
  };
}

ConvolutionShape convolution_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                   const Conv2dOptions& options) {
  require(
      x.size() == 4 && y.size() == 4 && weight.size() == 4,
      "{}: images {} and {} need [batch, height, width, channels] and the weight {} needs [out, in / groups, height, width]",
      op, x, y, weight);
  require(x[3] > 0 && weight.numel() > 0, "{}: images {} and the weight {} need channels and a kernel", op, x, weight);
  require(options.groups > 0 && x[3] == weight[1] * options.groups && weight[0] % options.groups == 0,
          "{}: a weight of shape {} in {} groups does not fit images {} with {} channels", op, weight, options.groups, x, x[3]);
  const Extent2d kernel{weight[2], weight[3]};
  const Extent2d extent = conv2d_extent({x[1], x[2]}, kernel, options);
  require_shape(op, "the result", y, {x[0], extent.height, extent.width, weight[0]});
  return {.batch = x[0],
          .in = x[3],
          .out = weight[0],
          .groups = options.groups,
          .x = {x[1], x[2]},
          .y = extent,
          .kernel = kernel,
          .stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation};
}

ConvolutionShape transposed_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                  const ConvTranspose2dOptions& options) {
  require(
      x.size() == 4 && y.size() == 4 && weight.size() == 4,
      "{}: images {} and {} need [batch, height, width, channels] and the weight {} needs [in, out / groups, height, width]",
      op, x, y, weight);
  require(x[3] > 0 && weight.numel() > 0, "{}: images {} and the weight {} need channels and a kernel", op, x, weight);
  require(options.groups > 0 && x[3] == weight[0] && weight[0] % options.groups == 0,
          "{}: a weight of shape {} in {} groups is for {} channels and does not fit images {} with {}", op, weight,
          options.groups, weight[0], x, x[3]);
  const Extent2d extent = conv_transpose2d_extent({x[1], x[2]}, {weight[2], weight[3]}, options);
  require_shape(op, "the result", y, {x[0], extent.height, extent.width, weight[1] * options.groups});
  return convolution_shape(
      op, y, weight, x,
      {.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups});
}

}  // namespace trireme::ops
