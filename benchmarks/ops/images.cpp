#include <fmt/format.h>

#include <type_traits>

#include "ops/measure.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/pooling/pooling.hpp"
#include "trireme/ops/reduce/reduce.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t batch = 64;

template <typename T = float>
Tensor<T> filled(const Shape& shape) {
  Tensor<T> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data()[i] = T(static_cast<float>(i * 37 % 1009) / 500.0f - 1.0f);
  return tensor;
}

template <typename T>
double bytes(const Tensor<T>& tensor) {
  return static_cast<double>(tensor.numel()) * sizeof(T);
}

template <typename T = float>
void measure_convolution(Report& report, std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t kernel,
                         std::int64_t stride) {
  const ops::Conv2dOptions options{.stride = stride, .padding = kernel / 2};
  const auto extent = ops::conv2d_extent(size, kernel, options);
  const auto x = filled<T>({batch, size, size, in}), weight = filled<T>({out, in, kernel, kernel});
  const auto bias = filled({out});
  auto y = filled<T>({batch, extent.height, extent.width, out});
  Tensor<T> dx(x.shape());
  Tensor<float> dweight(weight.shape()), dbias({out});
  const double operations = 2 * static_cast<double>(y.numel() * in * kernel * kernel);
  const auto name = fmt::format("conv2d {0}x{0}x{1} to {2}, {3}x{3} / {4}{5}", size, in, out, kernel, stride,
                                std::is_same_v<T, float> ? "" : " bfloat16");
  report.product(name, operations, [&] { ops::conv2d(x, weight, bias, options, y); });
  report.product(name + " dx", operations, [&] { ops::conv2d_backward_data(y, weight, options, dx, false); });
  report.product(name + " dweight", operations, [&] { ops::conv2d_backward_weight(x, y, options, dweight, false); });
  report.memory_bound(name + " dbias", bytes(y), [&] { ops::sum_rows(y, dbias, false); });
}

void measure_pooling(Report& report, const Shape& image, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const ops::Pool2dOptions max{.kernel = kernel, .stride = stride, .padding = padding};
  const ops::AvgPool2dOptions average{.kernel = kernel, .stride = stride, .padding = padding};
  const auto extent = ops::max_pool2d_extent({image[1], image[2]}, max);
  const auto x = filled(image);
  auto y = filled({image[0], extent.height, extent.width, image[3]});
  ops::PoolArgmax<Cpu> argmax(y.shape());
  Tensor<float> dx(image);
  const double argmax_bytes = static_cast<double>(argmax.numel()) * sizeof(std::int32_t);
  const auto name = fmt::format("{0}x{1}x{1}x{2}, {3}x{3} / {4}", image[0], image[1], image[3], kernel, stride);
  report.memory_bound("max_pool2d " + name, bytes(x) + bytes(y) + argmax_bytes, [&] { ops::max_pool2d(x, max, y, argmax); });
  report.memory_bound("max_pool2d " + name + " backward", bytes(x) + bytes(y) + argmax_bytes,
                      [&] { ops::max_pool2d_backward(y, argmax, max, dx, false); });
  report.memory_bound("avg_pool2d " + name, bytes(x) + bytes(y), [&] { ops::avg_pool2d(x, average, y); });
  report.memory_bound("avg_pool2d " + name + " backward", bytes(x) + bytes(y),
                      [&] { ops::avg_pool2d_backward(y, average, dx, false); });
}

}  // namespace

// The convolutions of a ResNet-18 for CIFAR (He et al. 2016, arXiv 1512.03385), and pooling of its images and of larger ones.
void measure_images(Report& report) {
  measure_convolution(report, 3, 64, 32, 3, 1);
  measure_convolution(report, 64, 64, 32, 3, 1);
  measure_convolution(report, 64, 128, 32, 3, 2);
  measure_convolution(report, 64, 128, 32, 1, 2);
  measure_convolution(report, 128, 128, 16, 3, 1);
  measure_convolution(report, 256, 256, 8, 3, 1);
  measure_convolution(report, 512, 512, 4, 3, 1);
  measure_convolution<bfloat16>(report, 64, 64, 32, 3, 1);
  measure_convolution<bfloat16>(report, 256, 256, 8, 3, 1);
  measure_pooling(report, {batch, 32, 32, 64}, 2, 2, 0);
  measure_pooling(report, {16, 112, 112, 64}, 3, 2, 1);
  measure_pooling(report, {batch, 28, 28, 8}, 2, 2, 0);
  for (const std::int64_t channels : {1, 3, 16, 64}) {
    const auto dy = filled({batch, 32, 32, channels});
    Tensor<float> dbias({channels});
    report.memory_bound(fmt::format("dbias of 64x32x32x{}", channels), bytes(dy), [&] { ops::sum_rows(dy, dbias, false); });
  }
  const auto x = filled({batch, 4, 4, 512});
  Tensor<float> y({batch, 1, 1, 512}), dx(x.shape());
  report.memory_bound("adaptive_avg_pool2d 64x4x4x512 to 1", bytes(x), [&] { ops::adaptive_avg_pool2d(x, y); });
  report.memory_bound("adaptive_avg_pool2d 64x4x4x512 to 1 backward", bytes(x),
                      [&] { ops::adaptive_avg_pool2d_backward(y, dx, false); });
}
