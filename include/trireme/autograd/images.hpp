#pragma once

#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/operands.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/pooling/pooling.hpp"

// Images are [batch, height, width, channels]; options and the sizes of results as in ops/convolution/convolution.hpp and
// ops/pooling/pooling.hpp.
namespace trireme TRIREME_EXPORT {

// x[..., in], weight[out, in / groups, kernel height, kernel width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> conv2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                     const Variable<Accumulate<T>, D>& bias = {}, const ops::Conv2dOptions& options = {});

// x[..., in], weight[in, out / groups, kernel height, kernel width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> conv_transpose2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                               const Variable<Accumulate<T>, D>& bias = {},
                                               const ops::ConvTranspose2dOptions& options = {});

// x[batch, height, width, channels] -> [batch, y height, y width, channels] of the same channels.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> max_pool2d(const Variable<T, D>& x, const ops::Pool2dOptions& options);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> avg_pool2d(const Variable<T, D>& x, const ops::AvgPool2dOptions& options);

// To `output` pixels, whatever the size of x; 1 is the average or the maximum of a whole image.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> adaptive_max_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> adaptive_avg_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);

// Channels before pixels, as torch flattens: [batch, height, width, channels] -> [batch, channels * height * width].
template <typename T, typename D>
Variable<T, D> flatten(const Variable<T, D>& x) {
  require_operands("flatten", x);
  require(x.shape().size() == 4, "flatten: x {} is not [batch, height, width, channels]", x.shape());
  const std::int64_t pixels = x.shape()[1] * x.shape()[2];
  const std::int64_t channels = x.shape()[3];
  const Variable<T, D> rows = reshape(x, {x.shape()[0], pixels, channels});
  return reshape(channels == 1 ? rows : transpose(rows, 1, 2), {x.shape()[0], channels * pixels});
}

// Back: [batch, channels * height * width] -> [batch, height, width, channels].
template <typename T, typename D>
Variable<T, D> unflatten(const Variable<T, D>& x, const ops::Extent2d& extent, std::int64_t channels) {
  require_operands("unflatten", x);
  const std::int64_t pixels = extent.height * extent.width;
  const Shape& shape = x.shape();
  require(shape.size() == 2 && shape[1] == channels * pixels, "unflatten: x {} is not [batch, {} * {} * {}]", shape, channels,
          extent.height, extent.width);
  const Variable<T, D> rows = reshape(x, {shape[0], channels, pixels});
  return reshape(channels == 1 ? rows : transpose(rows, 1, 2), {shape[0], extent.height, extent.width, channels});
}

}  // namespace trireme
