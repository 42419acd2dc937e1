#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent2d.hpp"
#include "trireme/tensor/tensor.hpp"

// Images are [batch, height, width, channels]; the batch may be 0. `accumulate` adds to the output instead of overwriting it.
// Shapes that do not fit throw Error.
// A CPU uses oneDNN, or plain loops for double. bfloat16 and float16 are converted to float if the processor can't multiply
// these types. Some convolutions of float use other algorithms:
// - large 3 x 3 convolutions of stride 1: Winograd's algorithm, with larger rounding errors than a plain sum
// - convolutions with few pixels and large weights, and gradients of 1 x 1 kernels: matrix products
// - narrow groups: products of vectors
// TRIREME_CONVOLUTION=direct turns Winograd's algorithm off. A GPU uses cuDNN, or plain sums if cuDNN has no plan.
namespace trireme TRIREME_EXPORT {
namespace ops {

struct Conv2dOptions {
  Extent2d stride = 1;
  Extent2d padding = 0;
  Extent2d dilation = 1;
  std::int64_t groups = 1;  // a depthwise convolution has as many groups as channels
};

// The height and width of conv2d's result, in pixels, for an image of extent `input` and a kernel of extent `kernel`. A kernel
// that does not fit the padded image is an error.
Extent2d conv2d_extent(const Extent2d& input, const Extent2d& kernel, const Conv2dOptions& options);

// Cross-correlation of x[batch, height, width, in] with weight[out, in / groups, kernel height, kernel width] into
// y[batch, y height, y width, out]; an undefined bias[out] adds nothing.
template <typename T, typename D>
TRIREME_EXPORT void conv2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                           const Conv2dOptions& options, Tensor<T, D>& y);

// dx = the gradient of conv2d's x. dx has the shape of x, and dy has the shape of y.
template <typename T, typename D>
TRIREME_EXPORT void conv2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Conv2dOptions& options,
                                         Tensor<T, D>& dx, bool accumulate);

// dweight = the gradient of the weight. The gradient of the bias is sum_rows(dy).
template <typename T, typename D>
TRIREME_EXPORT void conv2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const Conv2dOptions& options,
                                           Tensor<Accumulate<T>, D>& dweight, bool accumulate);

struct ConvTranspose2dOptions {
  Extent2d stride = 1;
  Extent2d padding = 0;         // rows and columns removed from each side of the result
  Extent2d output_padding = 0;  // added at the bottom and at the right; smaller than the stride
  Extent2d dilation = 1;
  std::int64_t groups = 1;
};

// The height and width of conv_transpose2d's result, in pixels: (input - 1) * stride - 2 * padding + dilation * (kernel - 1) +
// output_padding + 1. Throws Error if no pixel is left or output_padding is not below the stride.
Extent2d conv_transpose2d_extent(const Extent2d& input, const Extent2d& kernel, const ConvTranspose2dOptions& options);

// The transposed convolution of x[batch, height, width, in] with weight[in, out / groups, kernel height, kernel width] into
// y[batch, y height, y width, out]. This is conv2d_backward_data with x as dy, plus bias[out], which may be undefined.
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                                     const ConvTranspose2dOptions& options, Tensor<T, D>& y);

// dx = the gradient of conv_transpose2d's x. dx has the shape of x, and dy has the shape of y.
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight,
                                                   const ConvTranspose2dOptions& options, Tensor<T, D>& dx, bool accumulate);

// dweight = the gradient of the weight [in, out / groups, kernel height, kernel width]. The gradient of the bias is
// sum_rows(dy).
template <typename T, typename D>
TRIREME_EXPORT void conv_transpose2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy,
                                                     const ConvTranspose2dOptions& options, Tensor<Accumulate<T>, D>& dweight,
                                                     bool accumulate);

}  // namespace ops
}  // namespace trireme
