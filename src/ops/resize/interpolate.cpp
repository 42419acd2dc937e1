#include "trireme/ops/resize/interpolate.hpp"

#include <cmath>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/resize/interpolate_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// Uses `scale` instead of `size` if `by_scale` is set.
ResizedDim resized_dim(std::int64_t in, std::int64_t size, bool by_scale, double scale, bool align_corners) {
  ResizedDim dim{.in = in, .out = size};
  if (by_scale) {
    require(std::isfinite(scale) && scale > 0, "interpolate: the scale {} is not above 0", scale);
    const double out = std::floor(static_cast<double>(in) * scale);
    require(out < 0x1p53, "interpolate: {} pixels scaled by {} are too many", in, scale);
    dim.out = static_cast<std::int64_t>(out);
  }
  require(in > 0 && dim.out > 0, "interpolate: {} pixels can't become {}", in, dim.out);
  if (align_corners) {
    dim.scale = dim.out > 1 ? static_cast<double>(in - 1) / static_cast<double>(dim.out - 1) : 0;
  } else {
    dim.scale = by_scale ? 1 / scale : static_cast<double>(in) / static_cast<double>(dim.out);
  }
  return dim;
}

// The two pixels of x, and their weight in type A, for each pixel of y along a dim.
template <typename A>
struct ResizedPixels {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  std::vector<A> weight;

  ResizedPixels(const Interpolation& sizes, const ResizedDim& dim) {
    for (std::int64_t place = 0; place < dim.out; ++place) {
      const ResizedPixel pixel = resized_pixel(dim, sizes.bilinear, sizes.align_corners, place);
      first.push_back(pixel.first);
      second.push_back(pixel.second);
      weight.push_back(static_cast<A>(pixel.weight));
    }
  }
};

}  // namespace

Interpolation interpolation_of(const Shape& x, const InterpolateOptions& options) {
  require(x.size() == 4, "interpolate: x {} is not [batch, channels, height, width]", x);
  const bool by_size = options.size != Extent2d();
  const bool by_scale = options.scale.height != 0 || options.scale.width != 0;
  require(by_size != by_scale, "interpolate: give either a size or a scale");
  const bool bilinear = options.mode == InterpolateMode::bilinear;
  require(bilinear || !options.align_corners, "interpolate: align_corners belongs to InterpolateMode::bilinear");
  return {.images = x[0] * x[1],
          .height = resized_dim(x[2], options.size.height, by_scale, options.scale.height, options.align_corners),
          .width = resized_dim(x[3], options.size.width, by_scale, options.scale.width, options.align_corners),
          .bilinear = bilinear,
          .align_corners = options.align_corners};
}

Shape interpolated_shape(const Shape& x, const Interpolation& interpolation) {
  return {x[0], x[1], interpolation.height.out, interpolation.width.out};
}

template <>
template <typename T>
void Interpolates<Cpu>::forward(const InterpolatePixel<T>& body) {
  using A = Accumulate<T>;
  const Interpolation& sizes = body.sizes;
  const ResizedPixels<A> columns(sizes, sizes.width);
  const std::int64_t width = sizes.width.out;
  parallel_rows(sizes.images * sizes.height.out, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number) {
      const ResizedPixel row = resized_pixel(sizes.height, sizes.bilinear, sizes.align_corners, number % sizes.height.out);
      const T* image = body.x + number / sizes.height.out * sizes.height.in * sizes.width.in;
      const T* first = image + row.first * sizes.width.in;
      const T* second = image + row.second * sizes.width.in;
      T* to = body.y + number * width;
      if (!sizes.bilinear) {
        for (std::int64_t i = 0; i < width; ++i) to[i] = first[columns.first[static_cast<std::size_t>(i)]];
        continue;
      }
      const A h = static_cast<A>(row.weight);
      for (std::int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t left = columns.first[at];
        const std::int64_t right = columns.second[at];
        const A w = columns.weight[at];
        const A above = (1 - w) * widened(first[left]) + w * widened(first[right]);
        const A below = (1 - w) * widened(second[left]) + w * widened(second[right]);
        to[i] = rounded<T>((1 - h) * above + h * below);
      }
    }
  });
}

// One thread sums a row of dx, over the rows of dy that depend on this row.
template <>
template <typename T>
void Interpolates<Cpu>::backward(const InterpolateBackward<T>& body) {
  using A = Accumulate<T>;
  const Interpolation& sizes = body.sizes;
  const ResizedPixels<A> columns(sizes, sizes.width);
  const std::int64_t work = sizes.width.in + sizes.width.out * (sizes.height.out / sizes.height.in + 1);
  parallel_rows(sizes.images * sizes.height.in, work, [&](std::int64_t begin, std::int64_t end) {
    std::vector<A> sums(static_cast<std::size_t>(sizes.width.in));
    for (std::int64_t number = begin; number < end; ++number) {
      const std::int64_t row = number % sizes.height.in;
      const T* image = body.dy + number / sizes.height.in * sizes.height.out * sizes.width.out;
      const ResizedRange rows = pixels_with(sizes.height, row);
      std::fill(sums.begin(), sums.end(), A{});
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        const auto of_row = static_cast<A>(weight_in(resized_pixel(sizes.height, sizes.bilinear, sizes.align_corners, h), row));
        if (of_row == 0) continue;
        const T* from = image + h * sizes.width.out;
        for (std::size_t i = 0; i < columns.first.size(); ++i) {
          const A gradient = of_row * widened(from[i]);
          sums[static_cast<std::size_t>(columns.first[i])] += (1 - columns.weight[i]) * gradient;
          if (columns.weight[i] != 0) sums[static_cast<std::size_t>(columns.second[i])] += columns.weight[i] * gradient;
        }
      }
      T* to = body.dx + number * sizes.width.in;
      for (std::size_t i = 0; i < sums.size(); ++i) to[i] = rounded<T>(body.accumulate ? widened(to[i]) + sums[i] : sums[i]);
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, interpolate, Cpu)
TRIREME_INSTANTIATE(FLOATS, interpolate_backward, Cpu)

}  // namespace trireme::ops
