#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/resize/interpolate_options.hpp"
#include "trireme/ops/resize/interpolation.hpp"
#include "trireme/tensor/tensor.hpp"

// Resizes images [batch, channels, height, width], as torch.nn.functional.interpolate does. T: float, double, bfloat16,
// float16, computed in Accumulate<T>. Coordinates of pixels are double; in nearest mode they are float, as in torch.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Throws Error{invalid_argument} if the options give no size or the image has no pixels.
Interpolation interpolation_of(const Shape& x, const InterpolateOptions& options);
Shape interpolated_shape(const Shape& x, const Interpolation& interpolation);

template <typename T, typename D>
TRIREME_EXPORT void interpolate(const Interpolation& interpolation, const Tensor<T, D>& x, Tensor<T, D>& y);

// dx = the gradient of x, or += with `accumulate`. The order of additions is fixed.
template <typename T, typename D>
TRIREME_EXPORT void interpolate_backward(const Interpolation& interpolation, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                         bool accumulate);

}  // namespace ops

// interpolate(x, {.scale = 2, .mode = InterpolateMode::bilinear})
template <typename T, typename D>
Tensor<T, D> interpolate(const Tensor<T, D>& x, const InterpolateOptions& options) {
  require(x.defined(), "interpolate: x is undefined");
  const ops::Interpolation interpolation = ops::interpolation_of(x.shape(), options);
  Tensor<T, D> y(ops::interpolated_shape(x.shape(), interpolation));
  ops::interpolate(interpolation, x, y);
  return y;
}

}  // namespace trireme
