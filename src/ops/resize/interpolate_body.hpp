#pragma once

#include <cmath>

#include "ops/base/pack.hpp"
#include "trireme/ops/resize/interpolation.hpp"

// The operations of ops/resize/interpolate.hpp, a thread for each pixel that is written.
namespace trireme::ops {

// A pixel of y along one dim: (1 - weight) of pixel `first` of x and weight of pixel `second`.
struct ResizedPixel {
  std::int64_t first;
  std::int64_t second;
  double weight;
};

TRIREME_TEAM ResizedPixel resized_pixel(const ResizedDim& dim, bool bilinear, bool align_corners, std::int64_t place) {
  const std::int64_t last = dim.in - 1;
  if (!bilinear) {
    const auto at = static_cast<std::int64_t>(floorf(static_cast<float>(place) * static_cast<float>(dim.scale)));
    const std::int64_t pixel = at < last ? at : last;
    return {pixel, pixel, 0};
  }
  const auto number = static_cast<double>(place);
  const double wanted = align_corners ? dim.scale * number : dim.scale * (number + 0.5) - 0.5;
  const double at = wanted > 0 ? wanted : 0;
  const auto whole = static_cast<std::int64_t>(at);
  const std::int64_t first = whole < last ? whole : last;
  const double weight = at - static_cast<double>(first);
  return {first, first < last ? first + 1 : first, weight < 1 ? weight : 1};
}

TRIREME_TEAM double weight_in(const ResizedPixel& of_y, std::int64_t of_x) {
  return (of_y.first == of_x ? 1 - of_y.weight : 0) + (of_y.second == of_x ? of_y.weight : 0);
}

struct ResizedRange {
  std::int64_t begin;
  std::int64_t end;
};

// The range of pixels of y that may depend on this pixel of x. Some inside do not.
TRIREME_TEAM ResizedRange pixels_with(const ResizedDim& dim, std::int64_t of_x) {
  if (dim.scale <= 0) return {0, dim.out};
  const double begin = ::floor(static_cast<double>(of_x - 1) / dim.scale) - 1;
  const double end = ::ceil(static_cast<double>(of_x + 2) / dim.scale) + 2;
  return {of_x == 0 || begin <= 0 ? 0 : static_cast<std::int64_t>(begin),
          of_x == dim.in - 1 || end >= static_cast<double>(dim.out) ? dim.out : static_cast<std::int64_t>(end)};
}

// For i in [0, images * height.out * width.out).
template <typename T>
struct InterpolatePixel {
  Interpolation sizes;
  const T* x;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    using A = Accumulate<T>;
    const std::int64_t image = i / sizes.width.out / sizes.height.out;
    const ResizedPixel row =
        resized_pixel(sizes.height, sizes.bilinear, sizes.align_corners, i / sizes.width.out % sizes.height.out);
    const ResizedPixel column = resized_pixel(sizes.width, sizes.bilinear, sizes.align_corners, i % sizes.width.out);
    const T* first = x + (image * sizes.height.in + row.first) * sizes.width.in;
    if (!sizes.bilinear) {
      y[i] = first[column.first];
      return;
    }
    const T* second = x + (image * sizes.height.in + row.second) * sizes.width.in;
    const A w = static_cast<A>(column.weight);
    const A h = static_cast<A>(row.weight);
    const A above = (1 - w) * widened(first[column.first]) + w * widened(first[column.second]);
    const A below = (1 - w) * widened(second[column.first]) + w * widened(second[column.second]);
    y[i] = rounded<T>((1 - h) * above + h * below);
  }
};

// For i in [0, images * height.in * width.in).
template <typename T>
struct InterpolateBackward {
  Interpolation sizes;
  const T* dy;
  T* dx;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    using A = Accumulate<T>;
    const std::int64_t column = i % sizes.width.in;
    const std::int64_t row = i / sizes.width.in % sizes.height.in;
    const std::int64_t image = i / sizes.width.in / sizes.height.in;
    const ResizedRange rows = pixels_with(sizes.height, row);
    const ResizedRange columns = pixels_with(sizes.width, column);
    A sum = 0;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      const double of_row = weight_in(resized_pixel(sizes.height, sizes.bilinear, sizes.align_corners, h), row);
      if (of_row == 0) continue;
      const T* from = dy + (image * sizes.height.out + h) * sizes.width.out;
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        const double of_column = weight_in(resized_pixel(sizes.width, sizes.bilinear, sizes.align_corners, w), column);
        if (of_column != 0) sum += static_cast<A>(of_row * of_column) * widened(from[w]);
      }
    }
    dx[i] = rounded<T>(accumulate ? widened(dx[i]) + sum : sum);
  }
};

}  // namespace trireme::ops
