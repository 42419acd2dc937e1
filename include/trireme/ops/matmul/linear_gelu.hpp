#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// A linear layer followed by GELU (Activation::gelu_tanh). On a GPU, each function below is one fused product if cuBLASLt has
// such a product. cuBLASLt has no such product for double, or for widths that are not multiples of 8. Otherwise each function
// computes a product and then reads and changes the product's result. T: float, double, bfloat16, float16.
namespace trireme TRIREME_EXPORT {
namespace ops {

// x[..., in], weight[out, in], bias[out] or undefined; gelu_input[..., out] = x weight^T + bias, y = gelu(gelu_input).
template <typename T, typename D>
TRIREME_EXPORT void linear_gelu(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                                Tensor<T, D>& gelu_input, Tensor<T, D>& y);

// Here the linear layer with weight[next, out] follows the GELU, and dy[..., next] is the gradient of that layer's result. dx =
// (dy weight) * gelu'(gelu_input), the gradient of gelu_input[..., out].
template <typename T, typename D>
TRIREME_EXPORT void linear_gelu_backward(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Tensor<T, D>& gelu_input,
                                         Tensor<T, D>& dx);

}  // namespace ops
}  // namespace trireme
