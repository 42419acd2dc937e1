#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent3d.hpp"

// Convolutions of sequences [batch, length, channels] and of volumes [batch, depth, height, width, channels], computed by
// conv2d. Weights have torch's shapes, and are float if x is of a half type; biases may be undefined.
namespace trireme TRIREME_EXPORT {

struct Conv1dArguments {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

struct ConvTranspose1dArguments {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
};

struct Conv3dArguments {
  ops::Extent3d stride = 1;
  ops::Extent3d padding = 0;
  ops::Extent3d dilation = 1;
  std::int64_t groups = 1;
};

namespace detail {

template <typename T, typename D>
void require_sequences(std::string_view op, const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight) {
  require_operands(op, x, weight);
  require(x.shape().size() == 3 && weight.shape().size() == 3,
          "{}: x {} needs [batch, length, channels] and the weight {} 3 dims, with the kernel last", op, x.shape(),
          weight.shape());
}

}  // namespace detail

// x[batch, length, in], weight[out, in / groups, kernel] -> [batch, y_length, out].
template <typename T, typename D>
Variable<T, D> conv1d(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                      const Variable<Accumulate<T>, D>& bias = {}, const Conv1dArguments& options = {}) {
  detail::require_sequences("conv1d", x, weight);
  const ops::Conv2dOptions of_images{.stride = {1, options.stride},
                                     .padding = {0, options.padding},
                                     .dilation = {1, options.dilation},
                                     .groups = options.groups};
  return squeeze(conv2d(unsqueeze(x, 1), computed_weight<T>(unsqueeze(weight, 2)), bias, of_images), 1);
}

// x[batch, length, in], weight[in, out / groups, kernel] -> [batch, y_length, out].
template <typename T, typename D>
Variable<T, D> conv_transpose1d(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                                const Variable<Accumulate<T>, D>& bias = {}, const ConvTranspose1dArguments& options = {}) {
  detail::require_sequences("conv_transpose1d", x, weight);
  const ops::ConvTranspose2dOptions of_images{.stride = {1, options.stride},
                                              .padding = {0, options.padding},
                                              .output_padding = {0, options.output_padding},
                                              .dilation = {1, options.dilation},
                                              .groups = options.groups};
  return squeeze(conv_transpose2d(unsqueeze(x, 1), computed_weight<T>(unsqueeze(weight, 2)), bias, of_images), 1);
}

// x[batch, depth, height, width, in], weight[out, in / groups, kernel_depth, kernel_height, kernel_width] -> [batch, y_depth,
// y_height, y_width, out]. The kernel_depth neighbouring images under the kernel become the channels of one image. This takes
// kernel_depth copies of x.
template <typename T, typename D>
Variable<T, D> conv3d(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                      const Variable<Accumulate<T>, D>& bias = {}, const Conv3dArguments& options = {}) {
  require_operands("conv3d", x, weight);
  const Shape& of_x = x.shape();
  const Shape& of_weight = weight.shape();
  require(of_x.size() == 5 && of_weight.size() == 5,
          "conv3d: x {} needs [batch, depth, height, width, channels] and the weight {} 5 dims, with the kernel last", of_x,
          of_weight);
  const auto [batch, in, groups] = std::array{of_x[0], of_x[4], options.groups};
  require(groups > 0 && in == groups * of_weight[1], "conv3d: a weight {} with {} groups does not fit {} channels", of_weight,
          groups, in);
  require(options.stride.depth > 0 && options.dilation.depth > 0 && options.padding.depth >= 0,
          "conv3d: along the depth, stride and dilation must be above 0 and the padding at least 0, got {}, {} and {}",
          options.stride.depth, options.dilation.depth, options.padding.depth);
  const std::int64_t kernel_depth = of_weight[2];
  const std::int64_t reach = options.dilation.depth * (kernel_depth - 1);
  const std::int64_t room = of_x[1] + 2 * options.padding.depth - reach - 1;
  require(kernel_depth > 0 && room >= 0, "conv3d: a kernel of depth {}, dilated by {}, does not fit the padded depth {}",
          kernel_depth, options.dilation.depth, of_x[1] + 2 * options.padding.depth);
  const std::int64_t depth = room / options.stride.depth + 1;

  const std::int64_t pad_depth = options.padding.depth;
  const Variable<T, D> padded = pad_depth == 0 ? x : pad(x, {0, 0, 0, 0, 0, 0, pad_depth, pad_depth});
  std::vector<Variable<T, D>> planes;  // [batch * depth * height * width, groups, in / groups]
  for (std::int64_t k = 0; k < kernel_depth; ++k) {
    const std::int64_t first = k * options.dilation.depth;
    const auto plane = slice(padded, 1, first, first + (depth - 1) * options.stride.depth + 1, options.stride.depth);
    planes.push_back(reshape(plane, {batch * depth * of_x[2] * of_x[3], groups, of_weight[1]}));
  }
  const auto images = reshape(stack(planes, 2), {batch * depth, of_x[2], of_x[3], kernel_depth * in});
  const auto kernels =
      reshape(permute(weight, {0, 2, 1, 3, 4}), {of_weight[0], kernel_depth * of_weight[1], of_weight[3], of_weight[4]});
  const auto y = conv2d(images, computed_weight<T>(kernels), bias,
                        {.stride = {options.stride.height, options.stride.width},
                         .padding = {options.padding.height, options.padding.width},
                         .dilation = {options.dilation.height, options.dilation.width},
                         .groups = groups});
  return reshape(y, {batch, depth, y.shape()[1], y.shape()[2], of_weight[0]});
}

}  // namespace trireme
