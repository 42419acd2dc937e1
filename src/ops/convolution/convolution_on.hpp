#pragma once

#include "ops/base/check.hpp"
#include "ops/convolution/convolution_checks.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/matmul/matmul.hpp"

// The operations of ops/convolution/convolution.hpp for any device: Convolution<D> does the work.
namespace trireme::ops {

// Each overwrites its last argument. Only backward_weight is called for a batch of 0.
template <typename D>
struct Convolution {
  template <typename T>
  static void forward(const ConvolutionShape& shape, const Tensor<T, D>& x, const Tensor<T, D>& weight,
                      const Tensor<Accumulate<T>, D>& bias, Tensor<T, D>& y);  // adds the bias if shape.bias is set
  template <typename T>
  static void backward_data(const ConvolutionShape& shape, const Tensor<T, D>& dy, const Tensor<T, D>& weight,
                            Tensor<T, D>& dx);
  template <typename T>
  static void backward_weight(const ConvolutionShape& shape, const Tensor<T, D>& x, const Tensor<T, D>& dy,
                              Tensor<Accumulate<T>, D>& dweight);
  // images[..., channels] += bias[channels].
  template <typename T>
  static void add_bias(Tensor<T, D>& images, const Tensor<Accumulate<T>, D>& bias);
};

namespace convolution {

// Calls write(tensor), which overwrites a tensor: either `sum` itself, or with `accumulate` a temporary tensor that is added to
// `sum`.
template <typename T, typename D, typename Write>
void write_or_add(Tensor<T, D>& sum, bool accumulate, const Write& write) {
  if (!accumulate) return write(sum);
  Tensor<T, D> addend(sum.shape());
  write(addend);
  add(sum, addend, sum);
}

template <typename T, typename D>
void backward_weight(const ConvolutionShape& shape, const Tensor<T, D>& x, const Tensor<T, D>& dy,
                     Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  if (shape.batch == 0 && accumulate) return;
  write_or_add(dweight, accumulate, [&](auto& to) { Convolution<D>::backward_weight(shape, x, dy, to); });
}

}  // namespace convolution

template <typename T, typename D>
void conv2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
            const Conv2dOptions& options, Tensor<T, D>& y) {
  auto shape = convolution_shape("conv2d", x.shape(), weight.shape(), y.shape(), options);
  shape.bias = bias.defined();
  if (shape.bias) require_count("conv2d", "bias", bias, shape.out);
  if (shape.batch > 0) Convolution<D>::forward(shape, x, weight, bias, y);
}

template <typename T, typename D>
void conv2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Conv2dOptions& options, Tensor<T, D>& dx,
                          bool accumulate) {
  const auto shape = convolution_shape("conv2d_backward_data", dx.shape(), weight.shape(), dy.shape(), options);
  if (dx.numel() == 0) return;
  if (accumulate && shape.is_product()) {
    return matmul(dy, weight.reshape({shape.out, shape.in}), dx, {.accumulate = true});
  }
  convolution::write_or_add(dx, accumulate, [&](auto& to) { Convolution<D>::backward_data(shape, dy, weight, to); });
}

template <typename T, typename D>
void conv2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const Conv2dOptions& options,
                            Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  const auto shape = convolution_shape("conv2d_backward_weight", x.shape(), dweight.shape(), dy.shape(), options);
  convolution::backward_weight(shape, x, dy, dweight, accumulate);
}

template <typename T, typename D>
void conv_transpose2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                      const ConvTranspose2dOptions& options, Tensor<T, D>& y) {
  const auto shape = transposed_shape("conv_transpose2d", x.shape(), weight.shape(), y.shape(), options);
  if (bias.defined()) require_count("conv_transpose2d", "bias", bias, shape.in);
  if (shape.batch == 0) return;
  Convolution<D>::backward_data(shape, x, weight, y);
  if (bias.defined()) Convolution<D>::add_bias(y, bias);
}

template <typename T, typename D>
void conv_transpose2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const ConvTranspose2dOptions& options,
                                    Tensor<T, D>& dx, bool accumulate) {
  const auto shape = transposed_shape("conv_transpose2d_backward_data", dx.shape(), weight.shape(), dy.shape(), options);
  if (shape.batch == 0) return;
  convolution::write_or_add(dx, accumulate, [&](auto& to) { Convolution<D>::forward(shape, dy, weight, {}, to); });
}

template <typename T, typename D>
void conv_transpose2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const ConvTranspose2dOptions& options,
                                      Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  const auto shape = transposed_shape("conv_transpose2d_backward_weight", x.shape(), dweight.shape(), dy.shape(), options);
  convolution::backward_weight(shape, dy, x, dweight, accumulate);
}

}  // namespace trireme::ops
