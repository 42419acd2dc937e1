#pragma once

#include <compare>
#include <cstdint>

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

struct Extent2d {
  std::int64_t height = 0;
  std::int64_t width = 0;

  auto operator<=>(const Extent2d&) const = default;
};

struct Conv2dOptions {
  Extent2d stride = {1, 1};
  Extent2d padding = {0, 0};
  Extent2d dilation = {1, 1};
  std::int64_t groups = 1;  // as many as channels: a depthwise convolution
};

// The height and width of conv2d's result for an image of `input` and a kernel of `kernel`, in pixels.
Extent2d conv2d_extent(const Extent2d& input, const Extent2d& kernel, const Conv2dOptions& options);

// Cross-correlation of images x[batch, height, width, in] with weight[out, in / groups, kernel height, kernel width] into
// y[batch, y height, y width, out]; an undefined bias[out] adds nothing. oneDNN for float, which orders the weights as it
// likes; plain loops for double.
template <typename T, typename D>
void conv2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<T, D>& bias, const Conv2dOptions& options,
            Tensor<T, D>& y);

// dx for a conv2d from the shape of dx to that of dy. This is also the transposed convolution, of x = dy.
template <typename T, typename D>
void conv2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Conv2dOptions& options, Tensor<T, D>& dx,
                          bool accumulate);

// The gradient of the weight; that of the bias is sum_rows(dy).
template <typename T, typename D>
void conv2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const Conv2dOptions& options, Tensor<T, D>& dweight,
                            bool accumulate);

}  // namespace trireme::ops
