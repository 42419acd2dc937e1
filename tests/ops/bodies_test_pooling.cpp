#include <limits>

#include "ops/pooling/pooling_body.hpp"
#include "ops/pooling/pooling_windows.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/pooling/pooling.hpp"

// The pooling of a GPU, run by the host, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename Body>
void run(std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

template <int Width, typename T>
void check_max(const PoolImages& images, const Shape& image, const Shape& shape, const auto& forward, const auto& backward) {
  auto x = random_tensor<T>(image, 1, 2);
  for (T& element : x.span()) element = static_cast<T>(std::round(static_cast<Accumulate<T>>(element)));  // many equal ones
  if (x.numel() > 20) x.data()[20] = static_cast<T>(std::numeric_limits<Accumulate<T>>::quiet_NaN());
  Tensor<T> expected(shape);
  const Tensor<T> y(shape);
  PoolArgmax<Cpu> expected_argmax(shape);
  const PoolArgmax<Cpu> argmax(shape);
  forward(x, expected, expected_argmax);
  run(y.numel() / Width, MaxPool<Width, T>{images, x.data(), y.data(), argmax.data()});
  require_identical(argmax, expected_argmax);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto got = static_cast<double>(y.data()[i]), wanted = static_cast<double>(expected.data()[i]);
    CHECK((got == wanted || (std::isnan(got) && std::isnan(wanted))));
  }
  const auto dy = random_tensor<T>(shape, 2);
  for (const bool accumulate : {false, true}) {
    auto expected_dx = random_tensor<T>(image, 3);
    const Tensor<T> dx = expected_dx.clone();
    backward(dy, argmax, expected_dx, accumulate);
    run(dx.numel() / Width, MaxPoolGradient<Width, T>{images, dy.data(), argmax.data(), dx.data(), accumulate});
    require_close(dx, as_doubles(expected_dx), rounding<T>(1e-6));
  }
}

template <int Width, typename T>
void check_average(const PoolImages& images, const Shape& image, const Shape& shape, const auto& forward,
                   const auto& backward) {
  const auto x = random_tensor<T>(image, 1);
  Tensor<T> expected(shape);
  const Tensor<T> y(shape);
  forward(x, expected);
  run(y.numel() / Width, AveragePool<Width, T>{images, x.data(), y.data()});
  require_close(y, as_doubles(expected), rounding<T>(1e-6));
  const auto dy = random_tensor<T>(shape, 2);
  for (const bool accumulate : {false, true}) {
    auto expected_dx = random_tensor<T>(image, 3);
    const Tensor<T> dx = expected_dx.clone();
    backward(dy, expected_dx, accumulate);
    run(dx.numel() / Width, AveragePoolGradient<Width, T>{images, dy.data(), dx.data(), accumulate});
    require_close(dx, as_doubles(expected_dx), rounding<T>(1e-6));
  }
}

template <int Width, typename T>
void check_sliding(const Shape& image, const Pool2dOptions& options) {
  CAPTURE(Width, image.str(), options.kernel.height, options.stride.height, options.padding.height, options.dilation.height,
          options.ceil_mode);
  const Extent2d extent = max_pool2d_extent({image[1], image[2]}, options);
  const Shape shape{image[0], extent.height, extent.width, image[3]};
  check_max<Width, T>(
      {sliding_windows("test", image, shape, options), image[3]}, image, shape,
      [&](const auto& x, auto& y, auto& argmax) { max_pool2d(x, options, y, argmax); },
      [&](const auto& dy, const auto& argmax, auto& dx, bool accumulate) {
        max_pool2d_backward(dy, argmax, options, dx, accumulate);
      });
  if (options.dilation != Extent2d(1)) return;
  for (const bool count_include_pad : {false, true}) {
    const AvgPool2dOptions average{.kernel = options.kernel,
                                   .stride = options.stride,
                                   .padding = options.padding,
                                   .ceil_mode = options.ceil_mode,
                                   .count_include_pad = count_include_pad};
    check_average<Width, T>(
        {sliding_windows("test", image, shape, average), image[3]}, image, shape,
        [&](const auto& x, auto& y) { avg_pool2d(x, average, y); },
        [&](const auto& dy, auto& dx, bool accumulate) { avg_pool2d_backward(dy, average, dx, accumulate); });
  }
}

template <int Width, typename T>
void check_adaptive(const Shape& image, const Extent2d& extent) {
  CAPTURE(Width, image.str(), extent.height, extent.width);
  const Shape shape{image[0], extent.height, extent.width, image[3]};
  const PoolImages images{adaptive_windows("test", image, shape), image[3]};
  check_max<Width, T>(
      images, image, shape, [](const auto& x, auto& y, auto& argmax) { adaptive_max_pool2d(x, y, argmax); },
      [](const auto& dy, const auto& argmax, auto& dx, bool accumulate) {
        adaptive_max_pool2d_backward(dy, argmax, dx, accumulate);
      });
  check_average<Width, T>(
      images, image, shape, [](const auto& x, auto& y) { adaptive_avg_pool2d(x, y); },
      [](const auto& dy, auto& dx, bool accumulate) { adaptive_avg_pool2d_backward(dy, dx, accumulate); });
}

}  // namespace

TEMPLATE_TEST_CASE("pooling by the kernels of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  constexpr int pack = 16 / sizeof(T);
  check_sliding<pack, T>({2, 8, 6, 16}, {.kernel = 2});
  check_sliding<pack, T>({2, 9, 7, 8}, {.kernel = 3, .stride = 2, .padding = 1});
  check_sliding<1, T>({1, 9, 7, 5}, {.kernel = {3, 2}, .stride = {1, 2}, .padding = 1, .ceil_mode = true});
  check_sliding<1, T>({2, 11, 13, 3}, {.kernel = 3, .stride = 2, .padding = 2, .dilation = 2});
  check_sliding<1, T>({1, 10, 10, 1}, {.kernel = 2, .stride = 3, .dilation = {3, 2}, .ceil_mode = true});
  check_sliding<pack, T>({0, 4, 4, 8}, {.kernel = 2});
  check_adaptive<pack, T>({2, 7, 5, 8}, 1);
  check_adaptive<1, T>({2, 7, 5, 3}, {3, 4});
  check_adaptive<1, T>({1, 3, 4, 2}, {5, 7});
}
