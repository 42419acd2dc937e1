#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/ops/convolution.hpp"
#include "trireme/ops/pooling.hpp"

// Images are [batch, height, width, channels]; options and the sizes of results as in ops/convolution.hpp and ops/pooling.hpp.
namespace trireme {

// x[..., in], weight[out, in / groups, kernel height, kernel width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
Variable<T, D> conv2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias = {}, const ops::Conv2dOptions& options = {});

// x[..., in], weight[in, out / groups, kernel height, kernel width] -> [..., out]; bias[out] may be undefined.
template <typename T, typename D>
Variable<T, D> conv_transpose2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                const Variable<Accumulate<T>, D>& bias = {}, const ops::ConvTranspose2dOptions& options = {});

template <typename T, typename D>
Variable<T, D> max_pool2d(const Variable<T, D>& x, const ops::Pool2dOptions& options);
template <typename T, typename D>
Variable<T, D> avg_pool2d(const Variable<T, D>& x, const ops::AvgPool2dOptions& options);

// To `output` pixels, whatever the size of x; 1 is the average or the maximum of a whole image.
template <typename T, typename D>
Variable<T, D> adaptive_max_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);
template <typename T, typename D>
Variable<T, D> adaptive_avg_pool2d(const Variable<T, D>& x, const ops::Extent2d& output);

}  // namespace trireme
