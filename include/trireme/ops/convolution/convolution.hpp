#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent2d.hpp"
#include "trireme/tensor/tensor.hpp"

// Images are [batch, height, width, channels]; a batch of 0 is fine. On CPUs oneDNN for float and bfloat16, which orders the
// weights as it likes; plain loops for double; float16 in float. Of float, large 3 x 3 convolutions of stride 1 are Winograd's,
// with larger rounding errors than a plain sum (TRIREME_CONVOLUTION=direct forbids it), those that have few pixels for their
// weights are products of matrices, as gradients of 1 x 1 kernels are, and narrow groups are products of vectors. On GPUs
// cuDNN, and plain sums where it has no plan. `accumulate` adds to the output instead of overwriting it. Shapes that do not fit
// throw Error.
namespace trireme TRIREME_EXPORT {
namespace ops {

struct Conv2dOptions {
  Extent2d stride = 1;
  Extent2d padding = 0;
  Extent2d dilation = 1;
  std::int64_t groups = 1;  // as many as channels: a depthwise convolution
};

// The height and width of conv2d's result for an image of `input` and a kernel of `kernel`, in pixels. A kernel that does not
// fit the padded image is an error.
Extent2d conv2d_extent(const Extent2d& input, const Extent2d& kernel, const Conv2dOptions& options);

// Cross-correlation of x[batch, height, width, in] with weight[out, in / groups, kernel height, kernel width] into
// y[batch, y height, y width, out]; an undefined bias[out] adds nothing.
template <typename T, typename D>
TRIREME_EXPORT void conv2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                           const Conv2dOptions& options, Tensor<T, D>& y);

// dx for a conv2d from the shape of dx to that of dy.
template <typename T, typename D>
TRIREME_EXPORT void conv2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Conv2dOptions& options,
                                         Tensor<T, D>& dx, bool accumulate);

// The gradient of the weight; that of the bias is sum_rows(dy).
template <typename T, typename D>
TRIREME_EXPORT void conv2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const Conv2dOptions& options,
                                           Tensor<Accumulate<T>, D>& dweight, bool accumulate);

struct ConvTranspose2dOptions {
  Extent2d stride = 1;
  Extent2d padding = 0;         // rows and columns that the result lacks on each side
  Extent2d output_padding = 0;  // that it has more below and at the right; below the stride
  Extent2d dilation = 1;
  std::int64_t groups = 1;
};

// The height and width of conv_transpose2d's result, in pixels: (input - 1) * stride - 2 * padding + dilation * (kernel - 1) +
// output_padding + 1. Where nothing is left, or output_padding is not below the stride, is an error.
Extent2d conv_transpose2d_extent(const Extent2d& input, const Extent2d& kernel, const ConvTranspose2dOptions& options);

// The transposed convolution of x[batch, height, width, in] with weight[in, out / groups, kernel height, kernel width] into
// y[batch, y height, y width, out]: what conv2d_backward_data does to its dy, and a bias[out], which may be undefined.
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                                     const ConvTranspose2dOptions& options, Tensor<T, D>& y);

// dx for a conv_transpose2d from the shape of dx to that of dy.
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight,
                                                   const ConvTranspose2dOptions& options, Tensor<T, D>& dx, bool accumulate);

// The gradient of the weight [in, out / groups, kernel height, kernel width]; that of the bias is sum_rows(dy).
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy,
                                                     const ConvTranspose2dOptions& options, Tensor<Accumulate<T>, D>& dweight,
                                                     bool accumulate);

}  // namespace ops
}  // namespace trireme
