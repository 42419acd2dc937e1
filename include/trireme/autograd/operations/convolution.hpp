#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/convolution/convolution.hpp"

// Images are [batch, height, width, channels]; options and the sizes of results are as in ops/convolution/convolution.hpp.
namespace trireme TRIREME_EXPORT {

// x[..., in], weight[out, in / groups, kernel_height, kernel_width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> conv2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                     const Variable<Accumulate<T>, D>& bias = {}, const ops::Conv2dOptions& options = {});

// x[..., in], weight[in, out / groups, kernel_height, kernel_width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> conv_transpose2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                               const Variable<Accumulate<T>, D>& bias = {},
                                               const ops::ConvTranspose2dOptions& options = {});

}  // namespace trireme
