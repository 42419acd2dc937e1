#include "trireme/ops/convolution/convolution.hpp"

#include <cmath>

#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

Tensor<double> widened(const Tensor<float>& x) { return Tensor<double>::from(x.shape(), as_doubles(x)); }

template <typename T>
Tensor<float> floats_of(const Tensor<T>& x) {
  Tensor<float> floats(x.shape());
  cast(x, floats);
  return floats;
}

}  // namespace

TEST_CASE("convolutions of float agree with those of double, writing and adding") {
  const auto check = [](const Shape& image, const Shape& kernel, const Conv2dOptions& options, double spread = 1) {
    const auto x = random_tensor<float>(image, 1, spread);
    const auto weight = random_tensor<float>(kernel, 2);
    const auto bias = random_tensor<float>({kernel[0]}, 3);
    const auto extent = conv2d_extent({image[1], image[2]}, {kernel[2], kernel[3]}, options);
    const auto dy = random_tensor<float>({image[0], extent.height, extent.width, kernel[0]}, 4);
    Tensor<float> y(dy.shape());
    Tensor<double> wide_y(dy.shape()), wide_dx(image), wide_dweight(kernel);
    conv2d(x, weight, bias, options, y);
    conv2d(widened(x), widened(weight), widened(bias), options, wide_y);
    require_close(y, as_doubles(wide_y), 1e-4);
    conv2d_backward_data(widened(dy), widened(weight), options, wide_dx, false);
    conv2d_backward_weight(widened(x), widened(dy), options, wide_dweight, false);
    for (const bool accumulate : {false, true}) {
      auto dx = random_tensor<float>(image, 5);
      auto dweight = random_tensor<float>(kernel, 6);
      const auto expected_dx = accumulate ? add(as_doubles(dx), as_doubles(wide_dx)) : as_doubles(wide_dx);
      const auto expected_dweight = accumulate ? add(as_doubles(dweight), as_doubles(wide_dweight)) : as_doubles(wide_dweight);
      conv2d_backward_data(dy, weight, options, dx, accumulate);
      conv2d_backward_weight(x, dy, options, dweight, accumulate);
      require_close(dx, expected_dx, 1e-4);
      require_close(dweight, expected_dweight, 1e-4);
    }
  };
  check({2, 9, 7, 3}, {16, 3, 3, 3}, {.padding = {1, 1}});
  check({2, 8, 8, 32}, {32, 32, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
  check({1, 9, 11, 6}, {9, 2, 3, 5}, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {2, 1}, .groups = 3});
  check({2, 6, 6, 16}, {16, 1, 3, 3}, {.padding = {1, 1}, .groups = 16});
  // Depthwise, and groups of 2 and 4 channels.
  check({3, 13, 11, 19}, {19, 1, 3, 3}, {.padding = {1, 1}, .groups = 19});
  check({1, 7, 7, 40}, {40, 1, 7, 7}, {.padding = 3, .groups = 40});
  check({2, 30, 50, 6}, {6, 2, 5, 3}, {.stride = {2, 3}, .padding = {2, 0}, .groups = 3});
  check({2, 8, 9, 24}, {24, 4, 3, 3}, {.stride = 2, .padding = {1, 1}, .groups = 6});
  check({1, 12, 10, 12}, {12, 4, 2, 5}, {.padding = {0, 4}, .dilation = {5, 2}, .groups = 3});
  check({18, 5, 6, 6}, {6, 2, 1, 1}, {.stride = {3, 4}, .groups = 3});          // pixels of x that nothing reads
  check({1, 1, 1, 4}, {4, 2, 1, 1}, {.stride = 2, .padding = 1, .groups = 2});  // pixels of y that read nothing
  check({2, 4, 200, 5}, {5, 1, 3, 33}, {.padding = {4, 35}, .groups = 5});
  check({2, 20, 21, 18}, {18, 1, 9, 8}, {.stride = {3, 2}, .padding = {4, 2}, .dilation = {1, 2}, .groups = 18});
  check({1, 40, 3, 8}, {8, 1, 17, 1}, {.padding = {8, 0}, .groups = 8});
  check({1, 100, 90, 4}, {4, 2, 3, 3}, {.padding = {1, 1}, .groups = 2});  // several bands of rows
  check({9, 7, 6, 32}, {48, 32, 3, 3}, {.padding = {1, 1}});               // Winograd, as the next three
  check({32, 6, 6, 64}, {32, 64, 3, 3}, {});
  check({1, 16, 15, 32}, {64, 32, 3, 3}, {.padding = {2, 0}});
  check({9, 33, 17, 48}, {32, 48, 3, 3}, {.padding = 1}, 0.1);  // several blocks of tiles, sums of 5,049 products
  check({3, 14, 14, 64}, {32, 64, 1, 1}, {});
  check({2, 7, 6, 24}, {16, 24, 1, 1}, {.stride = {2, 3}});
  // Products of matrices: few pixels for the weights.
  check({1, 3, 3, 128}, {160, 128, 1, 1}, {});
  check({1, 5, 4, 320}, {352, 320, 1, 1}, {.stride = 2, .padding = 1});
  check({1, 3, 2, 80}, {96, 80, 3, 3}, {.padding = 1});
  check({1, 9, 7, 64}, {144, 64, 3, 2}, {.stride = {3, 2}, .padding = {0, 1}, .dilation = {2, 3}});
  check({2, 5, 5, 6}, {4, 3, 1, 1}, {.groups = 2});
  check({2, 5, 5, 5}, {7, 5, 1, 1}, {.padding = 1});
  // Wrong now and then by oneDNN's own 1x1 convolution.
  for (int repetition = 0; repetition < 20; ++repetition) {
    for (const std::int64_t channels : {1, 3, 4, 7, 12}) check({8, 8, 8, channels}, {8, channels, 1, 1}, {.stride = 2});
  }
}

TEST_CASE("transposed convolutions of float agree with those of double") {
  const auto check = [](const Shape& image, const Shape& kernel, const ConvTranspose2dOptions& options) {
    const auto x = random_tensor<float>(image, 1);
    const auto weight = random_tensor<float>(kernel, 2);
    const auto bias = random_tensor<float>({kernel[1] * options.groups}, 3);
    const auto extent = conv_transpose2d_extent({image[1], image[2]}, {kernel[2], kernel[3]}, options);
    Tensor<float> y({image[0], extent.height, extent.width, bias.numel()});
    Tensor<double> wide_y(y.shape()), wide_dx(image);
    conv_transpose2d(x, weight, bias, options, y);
    conv_transpose2d(widened(x), widened(weight), widened(bias), options, wide_y);
    require_close(y, as_doubles(wide_y), 1e-4);
    auto dx = random_tensor<float>(image, 5);
    conv_transpose2d_backward_data(wide_y, widened(weight), options, wide_dx, false);
    const auto expected = add(as_doubles(dx), as_doubles(wide_dx));
    conv_transpose2d_backward_data(y, weight, options, dx, true);
    require_close(dx, expected, 1e-3);
  };
  check({2, 5, 4, 32}, {32, 16, 4, 4}, {.stride = 2, .padding = 1});
  check({1, 3, 5, 6}, {6, 3, 3, 2}, {.stride = {2, 3}, .output_padding = {1, 2}, .groups = 2});
  check({40, 8, 8, 16}, {16, 3, 4, 4}, {.stride = 4});  // enough for several threads
  check({1, 6, 5, 6}, {6, 1, 4, 4}, {.stride = 2, .padding = 1, .groups = 6});
  check({2, 4, 5, 8}, {8, 2, 3, 3}, {.stride = {3, 1}, .output_padding = {2, 0}, .groups = 4});
  check({2, 11, 9, 32}, {32, 48, 3, 3}, {.padding = 1});              // Winograd
  check({1, 3, 2, 96}, {96, 80, 3, 3}, {.stride = 2, .padding = 1});  // products of matrices
  check({2, 5, 4, 24}, {24, 16, 1, 1}, {.stride = 2});
}

TEMPLATE_TEST_CASE("convolutions of half types agree with those of the same numbers in float", "", bfloat16, float16) {
  const auto check = [](const Shape& image, const Shape& kernel, const Conv2dOptions& options) {
    const auto x = random_tensor<TestType>(image, 1);
    const auto weight = random_tensor<TestType>(kernel, 2);
    const auto bias = random_tensor<float>({kernel[0]}, 3);
    const auto extent = conv2d_extent({image[1], image[2]}, {kernel[2], kernel[3]}, options);
    const auto dy = random_tensor<TestType>({image[0], extent.height, extent.width, kernel[0]}, 4);
    Tensor<TestType> y(dy.shape()), dx(image);
    Tensor<float> dweight(kernel), wide_y(dy.shape()), wide_dx(image), wide_dweight(kernel);
    conv2d(x, weight, bias, options, y);
    conv2d(floats_of(x), floats_of(weight), bias, options, wide_y);
    require_close(y, as_doubles(wide_y), 0.01);
    conv2d_backward_data(dy, weight, options, dx, false);
    conv2d_backward_data(floats_of(dy), floats_of(weight), options, wide_dx, false);
    require_close(dx, as_doubles(wide_dx), 0.01);
    conv2d_backward_weight(x, dy, options, dweight, false);
    conv2d_backward_weight(floats_of(x), floats_of(dy), options, wide_dweight, false);
    require_close(dweight, as_doubles(wide_dweight), 0.01);
  };
  check({2, 13, 9, 32}, {48, 32, 3, 3}, {.padding = 1});  // Winograd
  check({1, 3, 2, 80}, {96, 80, 3, 3}, {.padding = 1});   // products of matrices
  check({2, 7, 6, 24}, {16, 24, 1, 1}, {.stride = {2, 3}});
  check({2, 9, 7, 6}, {9, 2, 3, 3}, {.stride = 2, .groups = 3});   // oneDNN's
  check({2, 9, 9, 6}, {6, 1, 7, 7}, {.padding = 3, .groups = 6});  // of groups
}

TEST_CASE("Winograd convolutions err by at most 3e-6 of the result's norm") {
  const auto x = random_tensor<float>({4, 8, 8, 128}, 1);
  const auto weight = random_tensor<float>({128, 128, 3, 3}, 2);
  Tensor<float> y(x.shape());
  Tensor<double> wide_y(x.shape());
  conv2d(x, weight, {}, {.padding = 1}, y);
  conv2d(widened(x), widened(weight), {}, {.padding = 1}, wide_y);
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    error += std::pow(y.data()[i] - wide_y.data()[i], 2);
    norm += std::pow(wide_y.data()[i], 2);
  }
  REQUIRE(std::sqrt(error / norm) <= 3e-6);
}

TEST_CASE("convolutions of images without pixels have no gradients of them") {
  const Tensor<float> weight = random_tensor<float>({4, 2, 1, 1}, 1), dy = random_tensor<float>({1, 2, 8, 4}, 2);
  const Tensor<float> other_dy = random_tensor<float>({1, 8, 2, 4}, 2);
  Tensor<float> dx({1, 0, 8, 4}), other_dx({1, 8, 0, 4});
  CHECK_NOTHROW(conv2d_backward_data(dy, weight, {.padding = {1, 0}, .groups = 2}, dx, false));
  CHECK_NOTHROW(conv2d_backward_data(other_dy, weight, {.padding = {0, 1}, .groups = 2}, other_dx, false));
}

TEST_CASE("convolutions of no images give zero gradients of the weight") {
  const Tensor<float> x({0, 4, 4, 3}), dy({0, 4, 4, 2});
  auto weight = random_tensor<float>({2, 3, 3, 3}, 1), y = dy, dx = x;
  const auto old = as_doubles(weight);
  conv2d(x, weight, {}, {.padding = 1}, y);
  conv2d_backward_data(dy, weight, {.padding = 1}, dx, false);
  conv2d_backward_weight(x, dy, {.padding = 1}, weight, true);
  require_close(weight, old, 0);
  conv2d_backward_weight(x, dy, {.padding = 1}, weight, false);
  require_close(weight, Doubles(old.size()), 0);
}

TEST_CASE("convolutions refuse shapes that do not fit") {
  const auto x = random_tensor<float>({1, 4, 4, 3}, 1);
  Tensor<float> y({1, 4, 4, 8});
  REQUIRE_THROWS_AS(conv2d(x, random_tensor<float>({8, 3, 3, 3}, 2), {}, {}, y), Error);                   // y is [1, 2, 2, 8]
  REQUIRE_THROWS_AS(conv2d(x, random_tensor<float>({8, 2, 3, 3}, 2), {}, {.padding = {1, 1}}, y), Error);  // 2 channels
  REQUIRE_THROWS_AS(conv2d_extent({4, 4}, {3, 3}, {.stride = {0, 1}}), Error);
  REQUIRE_THROWS_AS(conv2d_extent({4, 4}, {5, 5}, {}), Error);
  REQUIRE_THROWS_AS(conv_transpose2d_extent(4, 3, {.stride = 2, .output_padding = 2}), Error);
  REQUIRE_THROWS_AS(conv_transpose2d_extent(4, 3, {.output_padding = -1}), Error);
  REQUIRE_THROWS_AS(conv_transpose2d_extent(1, 2, {.padding = 1}), Error);  // nothing would be left
}
