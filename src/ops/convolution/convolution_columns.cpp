#include "ops/convolution/convolution_columns.hpp"

#include <algorithm>

#include "ops/base/parallel.hpp"

namespace trireme::ops {
namespace {

std::int64_t taps_of(const ConvolutionShape& shape) { return shape.kernel.height * shape.kernel.width; }
std::int64_t y_pixels(const ConvolutionShape& shape) { return shape.batch * shape.y.height * shape.y.width; }

// If y had more pixels than channels, the columns would take more memory than the weight.
bool has_weights_per_pixel(const ConvolutionShape& shape, std::int64_t least) {
  const std::int64_t pixels = y_pixels(shape);
  return shape.groups == 1 && pixels <= shape.out && shape.in * taps_of(shape) * shape.out > least * pixels;
}

}  // namespace

// At these limits both ways take equally long on AVX2 and AVX-512, for the shapes of residual networks (benchmarks/products).
bool suits_columns(const ConvolutionShape& shape) { return has_weights_per_pixel(shape, shape.is_product() ? 2048 : 8192); }
bool gradient_suits_columns(const ConvolutionShape& shape) { return shape.is_1x1() || has_weights_per_pixel(shape, 4096); }

Tensor<float> columns_of(const ConvolutionShape& shape, const Tensor<float>& x) {
  const std::int64_t taps = taps_of(shape);
  const std::int64_t width = shape.in * taps;
  if (shape.is_product()) return x.reshape({y_pixels(shape), width});
  const Tensor<float> columns({y_pixels(shape), width});
  parallel_rows(y_pixels(shape), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      const std::int64_t image = pixel / (shape.y.height * shape.y.width);
      const std::int64_t top = pixel / shape.y.width % shape.y.height * shape.stride.height - shape.padding.height;
      const std::int64_t left = pixel % shape.y.width * shape.stride.width - shape.padding.width;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t i = top + tap / shape.kernel.width * shape.dilation.height;
        const std::int64_t j = left + tap % shape.kernel.width * shape.dilation.width;
        float* const to = columns.data() + pixel * width + tap;
        if (i < 0 || i >= shape.x.height || j < 0 || j >= shape.x.width) {
          for (std::int64_t channel = 0; channel < shape.in; ++channel) to[channel * taps] = 0;
          continue;
        }
        const float* const from = x.data() + ((image * shape.x.height + i) * shape.x.width + j) * shape.in;
        for (std::int64_t channel = 0; channel < shape.in; ++channel) to[channel * taps] = from[channel];
      }
    }
  });
  return columns;
}

void sum_columns(const ConvolutionShape& shape, const Tensor<float>& columns, Tensor<float>& x) {
  const std::int64_t taps = taps_of(shape);
  parallel_rows(shape.batch * shape.x.height * shape.x.width, shape.in * taps, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      const std::int64_t image = pixel / (shape.x.height * shape.x.width);
      float* const to = x.data() + pixel * shape.in;
      std::fill_n(to, shape.in, 0.0f);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t below =
            pixel / shape.x.width % shape.x.height + shape.padding.height - tap / shape.kernel.width * shape.dilation.height;
        const std::int64_t right =
            pixel % shape.x.width + shape.padding.width - tap % shape.kernel.width * shape.dilation.width;
        if (below < 0 || right < 0 || below % shape.stride.height != 0 || right % shape.stride.width != 0) continue;
        const std::int64_t i = below / shape.stride.height;
        const std::int64_t j = right / shape.stride.width;
        if (i >= shape.y.height || j >= shape.y.width) continue;
        const float* const from = columns.data() + ((image * shape.y.height + i) * shape.y.width + j) * shape.in * taps + tap;
        for (std::int64_t channel = 0; channel < shape.in; ++channel) to[channel] += from[channel * taps];
      }
    }
  });
}

Tensor<float> weight_matrix(const ConvolutionShape& shape, const Tensor<float>& weight) {
  return weight.reshape({shape.out, shape.in * taps_of(shape)});
}

}  // namespace trireme::ops
