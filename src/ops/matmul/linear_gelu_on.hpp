#pragma once

#include "ops/base/check.hpp"
#include "ops/matmul/matmul_shape.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/matmul/linear_gelu.hpp"
#include "trireme/ops/matmul/matmul.hpp"

// The operations of ops/matmul/linear_gelu.hpp for any device: LinearGelu<D> may have products with a fused GELU.
namespace trireme::ops {

template <typename D>
struct LinearGelu {
  // Returns false if there is no such product; then nothing was done.
  template <typename T>
  static bool forward(const MatmulShape& shape, const Tensor<T, D>& x, const Tensor<T, D>& weight,
                      const Tensor<Accumulate<T>, D>& bias, Tensor<T, D>& gelu_input, Tensor<T, D>& y);
  template <typename T>
  static bool backward(const MatmulShape& shape, const Tensor<T, D>& dy, const Tensor<T, D>& weight,
                       const Tensor<T, D>& gelu_input, Tensor<T, D>& dx);
};

template <typename T, typename D>
void linear_gelu(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                 Tensor<T, D>& gelu_input, Tensor<T, D>& y) {
  require_defined("linear_gelu", "x", x);
  require_defined("linear_gelu", "weight", weight);
  require_defined("linear_gelu", "y", y);
  MatmulShape shape = matmul_shape<T, T>(x.shape(), weight.shape(), y.shape(), {.transpose_b = true});
  shape.bias = bias.defined();
  if (shape.bias) require_count("linear_gelu", "bias", bias, shape.n);
  require_shape("linear_gelu", "gelu_input", gelu_input, y.shape());
  if (LinearGelu<D>::forward(shape, x, weight, bias, gelu_input, y)) return;
  linear(x, weight, bias, gelu_input);
  activation(Activation::gelu_tanh, gelu_input, y);
}

template <typename T, typename D>
void linear_gelu_backward(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Tensor<T, D>& gelu_input,
                          Tensor<T, D>& dx) {
  require_defined("linear_gelu_backward", "dy", dy);
  require_defined("linear_gelu_backward", "weight", weight);
  require_defined("linear_gelu_backward", "dx", dx);
  const MatmulShape shape = matmul_shape<T, T>(dy.shape(), weight.shape(), dx.shape(), {});
  require_shape("linear_gelu_backward", "gelu_input", gelu_input, dx.shape());
  if (LinearGelu<D>::backward(shape, dy, weight, gelu_input, dx)) return;
  matmul(dy, weight, dx);
  activation_backward(Activation::gelu_tanh, gelu_input, dx, dx, false);
}

}  // namespace trireme::ops
