#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// A linear layer and the GELU after it (Activation::gelu_tanh): on a GPU one fused product in each direction if cuBLASLt has
// it, which excludes double and widths that are not multiples of 8; otherwise a product and a pass over its result. T: float,
// double, bfloat16, float16.
namespace trireme TRIREME_EXPORT {
namespace ops {

// x[..., in], weight[out, in], bias[out] or undefined; gelu_input[..., out] = x weight^T + bias, y = gelu(gelu_input).
template <typename T, typename D>
TRIREME_EXPORT void linear_gelu(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                                Tensor<T, D>& gelu_input, Tensor<T, D>& y);

// The gradient of gelu_input[..., out], where dy[..., next] is the gradient of the result of a linear layer with weight[next,
// out] after the GELU: dx = (dy weight) * gelu'(gelu_input).
template <typename T, typename D>
TRIREME_EXPORT void linear_gelu_backward(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Tensor<T, D>& gelu_input,
                                         Tensor<T, D>& dx);

}  // namespace ops
}  // namespace trireme
