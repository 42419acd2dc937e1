#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

// A linear layer and the GELU behind it (Activation::gelu_tanh) in one product each way. T: float, bfloat16, float16; `out`
// must be a multiple of 8.
namespace trireme::ops::cuda {

// x[..., in], weight[out, in], bias[out] or undefined; gelu_input[..., out] = x weight^T + bias, y = gelu(gelu_input).
template <typename T>
void linear_gelu(const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& weight, const Tensor<Accumulate<T>, Cuda>& bias,
                 Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& y);

// The gradient of gelu_input[..., out], where dy[..., next] is that of a linear layer with weight[next, out] behind the GELU:
// dx = (dy weight) * gelu'(gelu_input).
template <typename T>
void linear_gelu_backward(const Tensor<T, Cuda>& dy, const Tensor<T, Cuda>& weight, const Tensor<T, Cuda>& gelu_input,
                          Tensor<T, Cuda>& dx);

}  // namespace trireme::ops::cuda
