#pragma once

#include "ops/base/check.hpp"
#include "ops/resize/interpolate_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/resize/interpolate.hpp"

// The operations of ops/resize/interpolate.hpp for any device: Interpolates<D> does the work.
namespace trireme::ops {

template <typename D>
struct Interpolates {
  template <typename T>
  static void forward(const InterpolatePixel<T>& body);
  template <typename T>
  static void backward(const InterpolateBackward<T>& body);
};

template <typename T, typename D>
void interpolate(const Interpolation& interpolation, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_count("interpolate", "x", x, interpolation.images * interpolation.height.in * interpolation.width.in);
  require_count("interpolate", "y", y, interpolation.images * interpolation.height.out * interpolation.width.out);
  if (y.numel() > 0) Interpolates<D>::forward(InterpolatePixel<T>{interpolation, x.data(), y.data()});
}

template <typename T, typename D>
void interpolate_backward(const Interpolation& interpolation, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_count("interpolate", "dy", dy, interpolation.images * interpolation.height.out * interpolation.width.out);
  require_count("interpolate", "dx", dx, interpolation.images * interpolation.height.in * interpolation.width.in);
  if (dx.numel() > 0) Interpolates<D>::backward(InterpolateBackward<T>{interpolation, dy.data(), dx.data(), accumulate});
}

}  // namespace trireme::ops
