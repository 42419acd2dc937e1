#include "ops/cuda_compare.hpp"
#include "trireme/ops/pooling/pooling.hpp"

// The pooling of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
void check_max(const Shape& image, const Shape& shape, const auto& forward, const auto& backward) {
  const auto x = random_tensor<T>(image, 1);
  Tensor<T> y(shape);
  Tensor<T, Cuda> y_there(shape);
  PoolArgmax<Cpu> argmax(shape);
  PoolArgmax<Cuda> argmax_there(shape);
  forward(x, y, argmax);
  forward(x.template to<Cuda>(), y_there, argmax_there);
  require_identical(y_there.template to<Cpu>(), y);
  require_identical(argmax_there.template to<Cpu>(), argmax);
  const auto dy = random_tensor<T>(shape, 2);
  for (const bool accumulate : {false, true}) {
    auto dx = random_tensor<T>(image, 3);
    auto dx_there = dx.template to<Cuda>();
    backward(dy, argmax, dx, accumulate);
    backward(dy.template to<Cuda>(), argmax_there, dx_there, accumulate);
    require_same(dx_there, dx);
  }
}

template <typename T>
void check_average(const Shape& image, const Shape& shape, const auto& forward, const auto& backward) {
  const auto x = random_tensor<T>(image, 1);
  Tensor<T> y(shape);
  Tensor<T, Cuda> y_there(shape);
  forward(x, y);
  forward(x.template to<Cuda>(), y_there);
  require_same(y_there, y);
  const auto dy = random_tensor<T>(shape, 2);
  for (const bool accumulate : {false, true}) {
    auto dx = random_tensor<T>(image, 3);
    auto dx_there = dx.template to<Cuda>();
    backward(dy, dx, accumulate);
    backward(dy.template to<Cuda>(), dx_there, accumulate);
    require_same(dx_there, dx);
  }
}

template <typename T>
void check_sliding(const Shape& image, const Pool2dOptions& options) {
  CAPTURE(image.str(), options.kernel.height, options.stride.height, options.padding.height, options.dilation.height);
  const Extent2d extent = max_pool2d_extent({image[1], image[2]}, options);
  const Shape shape{image[0], extent.height, extent.width, image[3]};
  check_max<T>(
      image, shape, [&](const auto& x, auto& y, auto& argmax) { max_pool2d(x, options, y, argmax); },
      [&](const auto& dy, const auto& argmax, auto& dx, bool accumulate) {
        max_pool2d_backward(dy, argmax, options, dx, accumulate);
      });
  if (options.dilation != Extent2d(1)) return;
  const AvgPool2dOptions average{
      .kernel = options.kernel, .stride = options.stride, .padding = options.padding, .ceil_mode = options.ceil_mode};
  check_average<T>(
      image, shape, [&](const auto& x, auto& y) { avg_pool2d(x, average, y); },
      [&](const auto& dy, auto& dx, bool accumulate) { avg_pool2d_backward(dy, average, dx, accumulate); });
}

template <typename T>
void check_adaptive(const Shape& image, const Extent2d& extent) {
  CAPTURE(image.str(), extent.height, extent.width);
  const Shape shape{image[0], extent.height, extent.width, image[3]};
  check_max<T>(
      image, shape, [](const auto& x, auto& y, auto& argmax) { adaptive_max_pool2d(x, y, argmax); },
      [](const auto& dy, const auto& argmax, auto& dx, bool accumulate) {
        adaptive_max_pool2d_backward(dy, argmax, dx, accumulate);
      });
  check_average<T>(
      image, shape, [](const auto& x, auto& y) { adaptive_avg_pool2d(x, y); },
      [](const auto& dy, auto& dx, bool accumulate) { adaptive_avg_pool2d_backward(dy, dx, accumulate); });
}

}  // namespace

TEMPLATE_TEST_CASE("pooling on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  check_sliding<T>({16, 56, 56, 64}, {.kernel = 3, .stride = 2, .padding = 1});
  check_sliding<T>({4, 28, 28, 32}, {.kernel = 2});
  check_sliding<T>({3, 11, 13, 5}, {.kernel = 3, .stride = 2, .padding = 2, .dilation = 2, .ceil_mode = true});
  check_sliding<T>({0, 4, 4, 8}, {.kernel = 2});
  check_adaptive<T>({8, 7, 7, 512}, 1);
  check_adaptive<T>({3, 7, 5, 3}, {3, 4});
}
