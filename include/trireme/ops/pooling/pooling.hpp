#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent2d.hpp"
#include "trireme/tensor/tensor.hpp"

// Pooling of images x[batch, height, width, channels] into y[batch, y height, y width, channels], with torch's options and
// results; the batch may be 0. `accumulate` adds to dx instead of overwriting it. Shapes that do not fit throw Error.
namespace trireme TRIREME_EXPORT {
namespace ops {

struct Pool2dOptions {
  Extent2d kernel = 0;
  Extent2d stride = 0;  // 0: the kernel
  Extent2d padding = 0;
  Extent2d dilation = 1;
  bool ceil_mode = false;  // keeps a last window that reaches beyond the padding
};

struct AvgPool2dOptions {
  Extent2d kernel = 0;
  Extent2d stride = 0;  // 0: the kernel
  Extent2d padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // the divisor counts the padding within a window
};

// The height and width of the result, in pixels, for an image of height and width `input`. ceil_mode rounds both up, but no
// window begins in the padding after the image. A kernel that does not fit, a stride below 1, and a padding above half the
// window are errors. The pooling functions also throw if a side, a stride or a window has 2^29 pixels or more.
Extent2d max_pool2d_extent(const Extent2d& input, const Pool2dOptions& options);
Extent2d avg_pool2d_extent(const Extent2d& input, const AvgPool2dOptions& options);

// The index of each maximum in its window. The window's pixels are counted in row-major order, without padding. Of equal
// maxima the first is taken; NaN counts as a maximum.
template <typename D>
using PoolArgmax = Tensor<std::int32_t, D>;

// Padding is never a maximum. argmax has the shape of y.
template <typename T, typename D>
TRIREME_EXPORT void max_pool2d(const Tensor<T, D>& x, const Pool2dOptions& options, Tensor<T, D>& y, PoolArgmax<D>& argmax);
template <typename T, typename D>
TRIREME_EXPORT void max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, const Pool2dOptions& options,
                                        Tensor<T, D>& dx, bool accumulate);

template <typename T, typename D>
TRIREME_EXPORT void avg_pool2d(const Tensor<T, D>& x, const AvgPool2dOptions& options, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void avg_pool2d_backward(const Tensor<T, D>& dy, const AvgPool2dOptions& options, Tensor<T, D>& dx,
                                        bool accumulate);

// Window i of n along a dim of `size` pixels is [floor(i * size / n), ceil((i + 1) * size / n)); n is the extent of y.
template <typename T, typename D>
TRIREME_EXPORT void adaptive_max_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y, PoolArgmax<D>& argmax);
template <typename T, typename D>
TRIREME_EXPORT void adaptive_max_pool2d_backward(const Tensor<T, D>& dy, const PoolArgmax<D>& argmax, Tensor<T, D>& dx,
                                                 bool accumulate);

template <typename T, typename D>
TRIREME_EXPORT void adaptive_avg_pool2d(const Tensor<T, D>& x, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void adaptive_avg_pool2d_backward(const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

}  // namespace ops
}  // namespace trireme
