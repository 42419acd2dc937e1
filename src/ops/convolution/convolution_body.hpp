#pragma once

#include "ops/base/pack.hpp"
#include "ops/convolution/convolution_shape.hpp"

// Convolutions by plain sums, for cases without a plan of cuDNN.
namespace trireme::ops {

// The positions of a convolution's products along a dim: x = y * stride - padding + tap * dilation.
struct ConvolutionDim {
  std::int64_t x_size;
  std::int64_t y_size;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t dilation;

  // The pixel of x, or -1 if it is outside.
  TRIREME_TEAM std::int64_t x(std::int64_t y, std::int64_t tap) const {
    const std::int64_t place = y * stride - padding + tap * dilation;
    return place < x_size ? place : -1;  // negative places are outside, too
  }
  TRIREME_TEAM std::int64_t y(std::int64_t x, std::int64_t tap) const {
    const std::int64_t place = x + padding - tap * dilation;
    return place >= 0 && place % stride == 0 && place / stride < y_size ? place / stride : -1;
  }
};

struct ConvolutionSizes {
  ConvolutionShape shape;

  TRIREME_TEAM std::int64_t in_of_group() const { return shape.in / shape.groups; }
  TRIREME_TEAM std::int64_t out_of_group() const { return shape.out / shape.groups; }
  TRIREME_TEAM std::int64_t taps() const { return shape.kernel.height * shape.kernel.width; }
  TRIREME_TEAM ConvolutionDim rows() const {
    return {shape.x.height, shape.y.height, shape.stride.height, shape.padding.height, shape.dilation.height};
  }
  TRIREME_TEAM ConvolutionDim columns() const {
    return {shape.x.width, shape.y.width, shape.stride.width, shape.padding.width, shape.dilation.width};
  }
  // Indices of an element of the weight [out, in / groups, taps], and of the first element of a pixel.
  TRIREME_TEAM std::int64_t in_weight(std::int64_t out, std::int64_t in, std::int64_t tap) const {
    return (out * in_of_group() + in) * taps() + tap;
  }
  TRIREME_TEAM std::int64_t in_x(std::int64_t image, std::int64_t row, std::int64_t column) const {
    return ((image * shape.x.height + row) * shape.x.width + column) * shape.in;
  }
  TRIREME_TEAM std::int64_t in_y(std::int64_t image, std::int64_t row, std::int64_t column) const {
    return ((image * shape.y.height + row) * shape.y.width + column) * shape.out;
  }
};

// A thread for each element of y.
template <typename T>
struct ConvolutionForward {
  ConvolutionSizes sizes;
  const T* x;
  const T* weight;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const ConvolutionShape& shape = sizes.shape;
    const std::int64_t out = i % shape.out;
    const std::int64_t pixel = i / shape.out;
    const std::int64_t first_in = out / sizes.out_of_group() * sizes.in_of_group();
    Accumulate<T> sum = 0;
    for (std::int64_t tap = 0; tap < sizes.taps(); ++tap) {
      const std::int64_t row = sizes.rows().x(pixel / shape.y.width % shape.y.height, tap / shape.kernel.width);
      const std::int64_t column = sizes.columns().x(pixel % shape.y.width, tap % shape.kernel.width);
      if (row < 0 || column < 0) continue;
      const T* from = x + sizes.in_x(pixel / shape.y.width / shape.y.height, row, column) + first_in;
      for (std::int64_t in = 0; in < sizes.in_of_group(); ++in) {
        sum += widened(from[in]) * widened(weight[sizes.in_weight(out, in, tap)]);
      }
    }
    y[i] = rounded<T>(sum);
  }
};

// A thread for each element of dx.
template <typename T>
struct ConvolutionDataGradient {
  ConvolutionSizes sizes;
  const T* dy;
  const T* weight;
  T* dx;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const ConvolutionShape& shape = sizes.shape;
    const std::int64_t in = i % shape.in;
    const std::int64_t pixel = i / shape.in;
    const std::int64_t first_out = in / sizes.in_of_group() * sizes.out_of_group();
    Accumulate<T> sum = 0;
    for (std::int64_t tap = 0; tap < sizes.taps(); ++tap) {
      const std::int64_t row = sizes.rows().y(pixel / shape.x.width % shape.x.height, tap / shape.kernel.width);
      const std::int64_t column = sizes.columns().y(pixel % shape.x.width, tap % shape.kernel.width);
      if (row < 0 || column < 0) continue;
      const T* from = dy + sizes.in_y(pixel / shape.x.width / shape.x.height, row, column) + first_out;
      for (std::int64_t out = 0; out < sizes.out_of_group(); ++out) {
        sum += widened(from[out]) * widened(weight[sizes.in_weight(first_out + out, in % sizes.in_of_group(), tap)]);
      }
    }
    dx[i] = rounded<T>(sum);
  }
};

// A team for each element of the weight.
template <typename T>
struct ConvolutionWeightGradient {
  ConvolutionSizes sizes;
  const T* x;
  const T* dy;
  Accumulate<T>* dweight;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t i) const {
    const ConvolutionShape& shape = sizes.shape;
    const std::int64_t tap = i % sizes.taps();
    const std::int64_t out = i / sizes.taps() / sizes.in_of_group();
    const std::int64_t in = out / sizes.out_of_group() * sizes.in_of_group() + i / sizes.taps() % sizes.in_of_group();
    const std::int64_t pixels = shape.batch * shape.y.height * shape.y.width;
    Accumulate<T> sum = 0;
    for (std::int64_t pixel = team.rank(); pixel < pixels; pixel += team.size()) {
      const std::int64_t row = sizes.rows().x(pixel / shape.y.width % shape.y.height, tap / shape.kernel.width);
      const std::int64_t column = sizes.columns().x(pixel % shape.y.width, tap % shape.kernel.width);
      if (row < 0 || column < 0) continue;
      const std::int64_t from = sizes.in_x(pixel / shape.y.width / shape.y.height, row, column) + in;
      sum += widened(x[from]) * widened(dy[pixel * shape.out + out]);
    }
    sum = team.sum(sum);
    if (team.rank() == 0) dweight[i] = sum;
  }
};

}  // namespace trireme::ops
