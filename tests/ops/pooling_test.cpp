#include "trireme/ops/pooling/pooling.hpp"

#include <algorithm>
#include <limits>

#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

// Of every window, by all of its kernel's places: the largest element and where it lies, the sum, and the places that count.
struct Window {
  double largest = 0;
  std::int64_t from = -1;
  double sum = 0;
  int pixels = 0;
  int padded = 0;
};

template <typename T, typename Options>
Window window_of(const Tensor<T>& x, const Options& options, const Extent2d& dilation, const Shape& y, std::int64_t element) {
  const std::int64_t c = element % y[3], j = element / y[3] % y[2], i = element / (y[3] * y[2]) % y[1];
  const std::int64_t image = element / (y[3] * y[2] * y[1]);
  const auto stride = options.stride == Extent2d(0) ? options.kernel : options.stride;
  Window window;
  for (std::int64_t a = 0; a < options.kernel.height; ++a) {
    for (std::int64_t b = 0; b < options.kernel.width; ++b) {
      const std::int64_t row = i * stride.height - options.padding.height + a * dilation.height;
      const std::int64_t column = j * stride.width - options.padding.width + b * dilation.width;
      if (row >= x.dim(1) + options.padding.height || column >= x.dim(2) + options.padding.width) continue;
      ++window.padded;
      if (row < 0 || row >= x.dim(1) || column < 0 || column >= x.dim(2)) continue;
      ++window.pixels;
      const std::int64_t place = ((image * x.dim(1) + row) * x.dim(2) + column) * x.dim(3) + c;
      const auto value = static_cast<double>(x.data()[place]);
      window.sum += value;
      if (window.from < 0 || value > window.largest) {
        window.largest = value;
        window.from = place;
      }
    }
  }
  return window;
}

template <typename T>
void check_max(const Shape& image, const Pool2dOptions& options, double spread = 1) {
  auto x = random_tensor<T>(image, 1);
  for (T& element : x.span()) element = static_cast<T>(std::round(element * spread));  // a small spread: many equal elements
  const auto extent = max_pool2d_extent({image[1], image[2]}, options);
  const Shape shape{image[0], extent.height, extent.width, image[3]};
  const auto dy = random_tensor<T>(shape, 2);
  Tensor<T> y(shape);
  PoolArgmax<Cpu> argmax(shape);
  max_pool2d(x, options, y, argmax);
  Doubles expected, expected_dx(static_cast<std::size_t>(x.numel()));
  for (std::int64_t element = 0; element < y.numel(); ++element) {
    const auto window = window_of(x, options, options.dilation, shape, element);
    expected.push_back(window.largest);
    expected_dx[static_cast<std::size_t>(window.from)] += static_cast<double>(dy.data()[element]);
  }
  require_close(y, expected, 0);
  auto dx = random_tensor<T>(image, 3);
  const auto added = add(as_doubles(dx), expected_dx);
  max_pool2d_backward(dy, argmax, options, dx, true);
  require_close(dx, added, tolerance<T>(1e-6));
  max_pool2d_backward(dy, argmax, options, dx, false);
  require_close(dx, expected_dx, tolerance<T>(1e-6));
}

template <typename T>
void check_average(const Shape& image, const AvgPool2dOptions& options) {
  const auto x = random_tensor<T>(image, 1);
  const auto extent = avg_pool2d_extent({image[1], image[2]}, options);
  Tensor<T> y({image[0], extent.height, extent.width, image[3]});
  avg_pool2d(x, options, y);
  Doubles expected;
  for (std::int64_t element = 0; element < y.numel(); ++element) {
    const auto window = window_of(x, options, 1, y.shape(), element);
    expected.push_back(window.sum / (options.count_include_pad ? window.padded : window.pixels));
  }
  require_close(y, expected, tolerance<T>(1e-6));
}

}  // namespace

TEMPLATE_TEST_CASE("max pooling takes the first of the largest elements of each window", "", float, double) {
  for (const double spread : {1.0, 1000.0}) {
    check_max<TestType>({2, 8, 6, 37}, {.kernel = 2}, spread);
    check_max<TestType>({2, 9, 7, 64}, {.kernel = 3, .stride = 2, .padding = 1}, spread);
    check_max<TestType>({1, 10, 11, 3}, {.kernel = {2, 3}, .stride = {3, 5}}, spread);
    check_max<TestType>({1, 10, 11, 5}, {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 1}, .ceil_mode = true}, spread);
    check_max<TestType>({1, 9, 9, 16}, {.kernel = 3, .stride = 1, .padding = 2, .dilation = {2, 3}}, spread);
    check_max<TestType>({3, 1, 1, 4}, {.kernel = 1}, spread);
    check_max<TestType>({1, 20, 20, 2}, {.kernel = 20}, spread);   // more places than a byte counts
    check_max<TestType>({33, 16, 16, 24}, {.kernel = 2}, spread);  // enough for several threads
  }
}

TEMPLATE_TEST_CASE("average pooling divides by what is asked for", "", float, double) {
  for (const bool count_include_pad : {true, false}) {
    for (const bool ceil_mode : {true, false}) {
      check_average<TestType>({2, 8, 6, 37}, {.kernel = 2, .ceil_mode = ceil_mode});
      check_average<TestType>(
          {2, 8, 10, 16},
          {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = ceil_mode, .count_include_pad = count_include_pad});
      check_average<TestType>({1, 5, 11, 3}, {.kernel = {2, 4},
                                              .stride = {3, 5},
                                              .padding = {1, 2},
                                              .ceil_mode = ceil_mode,
                                              .count_include_pad = count_include_pad});
    }
  }
}

TEMPLATE_TEST_CASE("NaN is a maximum, and so is minus infinity among its like", "", float, double, bfloat16, float16) {
  const auto cast = [](double value) { return static_cast<TestType>(static_cast<Accumulate<TestType>>(value)); };
  const auto run = [&](const std::vector<double>& values, double expected, int place) {
    for (const std::int64_t channels : {1, 37}) {
      Tensor<TestType> x({1, 2, 2, channels});
      for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = cast(static_cast<double>(i % 5));
      for (std::int64_t i = 0; i < 4; ++i) x.data()[(i + 1) * channels - 1] = cast(values[static_cast<std::size_t>(i)]);
      Tensor<TestType> y({1, 1, 1, channels});
      PoolArgmax<Cpu> argmax(y.shape());
      max_pool2d(x, {.kernel = 2}, y, argmax);
      const auto got = static_cast<double>(y.data()[channels - 1]);
      CHECK((got == expected || (std::isnan(got) && std::isnan(expected))));
      CHECK(argmax.data()[channels - 1] == place);
      for (std::int64_t c = 0; c + 1 < channels; ++c) CHECK_FALSE(std::isnan(static_cast<double>(y.data()[c])));
      // Its place alone gets the gradient.
      auto dy = Tensor<TestType>::full(y.shape(), cast(3));
      Tensor<TestType> dx(x.shape());
      max_pool2d_backward(dy, argmax, {.kernel = 2}, dx, false);
      for (int i = 0; i < 4; ++i) CHECK(static_cast<double>(dx.data()[(i + 1) * channels - 1]) == (i == place ? 3 : 0));
      // A gradient of NaN reaches it, and nothing else.
      dy.data()[channels - 1] = cast(std::numeric_limits<double>::quiet_NaN());
      max_pool2d_backward(dy, argmax, {.kernel = 2}, dx, false);
      for (std::int64_t i = 0; i < dx.numel(); ++i) {
        CHECK(std::isnan(static_cast<double>(dx.data()[i])) == (i == (place + 1) * channels - 1));
      }
    }
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  run({1, not_a_number, 3, 2}, not_a_number, 1);
  run({not_a_number, 1, 2, 3}, not_a_number, 0);
  run({not_a_number, 2, not_a_number, 1}, not_a_number, 2);  // the last, as in torch
  run({1, 3, 2, 3}, 3, 1);
  run({-infinity, -infinity, -infinity, -infinity}, -infinity, 0);
}

TEST_CASE("adaptive pooling cuts an image into windows that may overlap") {
  const auto x = Tensor<double>::from({1, 1, 5, 1}, std::vector<double>{1, 2, 4, 8, 16});
  const auto check = [&](std::int64_t width, const Doubles& averages, const Doubles& maxima) {
    Tensor<double> y({1, 1, width, 1});
    PoolArgmax<Cpu> argmax(y.shape());
    adaptive_avg_pool2d(x, y);
    require_close(y, averages, 1e-15);
    adaptive_max_pool2d(x, y, argmax);
    require_close(y, maxima, 0);
  };
  check(1, {6.2}, {16});
  check(2, {7.0 / 3, 28.0 / 3}, {4, 16});     // [0, 3), [2, 5)
  check(3, {1.5, 14.0 / 3, 12}, {2, 8, 16});  // [0, 2), [1, 4), [3, 5)
  check(7, {1, 1.5, 3, 4, 6, 12, 16}, {1, 2, 4, 4, 8, 16, 16});
}

TEST_CASE("max pooling of windows of more than 65536 pixels") {
  for (const Shape& image : {Shape{1, 300, 301, 1}, Shape{1, 1, 70'000, 3}}) {
    auto x = random_tensor<float>(image, 1);
    const std::int64_t largest = x.numel() - 5;
    x.data()[largest] = 100;
    Tensor<float> y({1, 1, 1, image[3]}), dx(image);
    PoolArgmax<Cpu> argmax(y.shape());
    adaptive_max_pool2d(x, y, argmax);
    const std::int64_t channel = largest % image[3];
    CHECK(y.data()[channel] == 100);
    CHECK(argmax.data()[channel] == largest / image[3]);
    const Pool2dOptions whole{.kernel = {image[1], image[2]}};
    max_pool2d(x, whole, y, argmax);
    CHECK(argmax.data()[channel] == largest / image[3]);
    for (const bool adaptive : {false, true}) {
      const auto dy = Tensor<float>::full(y.shape(), 2);
      adaptive ? adaptive_max_pool2d_backward(dy, argmax, dx, false) : max_pool2d_backward(dy, argmax, whole, dx, false);
      CHECK(dx.data()[largest] == 2);
      CHECK(std::count(dx.data(), dx.data() + dx.numel(), 0.0F) == dx.numel() - image[3]);
    }
  }
}

TEST_CASE("the size of a pooled image is torch's") {
  const auto height = [](std::int64_t size, const Pool2dOptions& options) { return max_pool2d_extent(size, options).height; };
  CHECK(height(7, {.kernel = 2}) == 3);
  CHECK(height(7, {.kernel = 2, .ceil_mode = true}) == 4);
  CHECK(height(6, {.kernel = 3, .stride = 3, .padding = 1, .ceil_mode = true}) == 3);
  CHECK(height(5, {.kernel = 2, .stride = 4, .padding = 1, .ceil_mode = true}) == 2);
  CHECK(height(2, {.kernel = 1, .stride = 3, .ceil_mode = true}) == 1);  // the second window would begin behind the image
  CHECK(height(1, {.kernel = 3, .stride = 1, .padding = 1}) == 1);
}

TEST_CASE("pooling refuses shapes that do not fit") {
  const auto x = random_tensor<float>({1, 4, 4, 3}, 1);
  Tensor<float> y({1, 2, 2, 3}), other({1, 3, 2, 3});
  PoolArgmax<Cpu> argmax(y.shape()), other_argmax(other.shape());
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = 2}, other, other_argmax), Error);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = 2}, y, other_argmax), Error);
  CHECK_THROWS_AS(max_pool2d_extent(4, {.kernel = 5}), Error);
  CHECK_THROWS_AS(max_pool2d_extent(4, {.kernel = 2, .padding = 2}), Error);
  CHECK_THROWS_AS(max_pool2d_extent(4, {.kernel = 2, .dilation = 0}), Error);
  CHECK_THROWS_AS(max_pool2d_extent(4, {.kernel = 2, .stride = -1}), Error);
  constexpr std::int64_t far = std::int64_t{1} << 29;
  CHECK_THROWS_WITH(
      max_pool2d(x, {.kernel = 2, .stride = far}, y, argmax),
      "max_pool2d: 4 pixels along a side, windows that span 2, a stride of 536870912 or a dilation of 1 are too many, "
      "536870911 are the most");
  Tensor<float> same(x.shape());
  PoolArgmax<Cpu> same_argmax(x.shape());
  CHECK_THROWS_AS(max_pool2d(x, {.kernel = 1, .stride = 1, .dilation = 8 * far}, same, same_argmax), Error);
  Tensor<float> lone({1, 1, 1, 3});
  PoolArgmax<Cpu> lone_argmax(lone.shape());
  CHECK_THROWS_AS(max_pool2d(lone, {.kernel = 2, .padding = 1, .dilation = 2}, lone, lone_argmax), Error);  // only padding
}
