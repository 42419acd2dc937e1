#include "ops/cuda_compare.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/ops/convolution/convolution.hpp"

// The convolutions of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// Products of many elements, and for half types a gradient that is rounded to the type of the weight.
template <typename T>
constexpr double slack = sizeof(T) == 2 ? 4 : 100;

struct Operations {
  Shape x, weight, y;
  std::int64_t bias;
};

template <typename T>
void check(const Operations& shapes, const auto& forward, const auto& backward_data, const auto& backward_weight) {
  using A = Accumulate<T>;
  CAPTURE(shapes.x.str(), shapes.weight.str(), shapes.y.str());
  const auto x = random_tensor<T>(shapes.x, 1);
  const auto weight = random_tensor<T>(shapes.weight, 2, 0.1);
  const std::int64_t pixels = shapes.y[0] * shapes.y[1] * shapes.y[2];
  const double spread = 1 / std::sqrt(std::max<double>(1, static_cast<double>(pixels)));  // the sums over pixels are about 1
  const auto dy = random_tensor<T>(shapes.y, 3, spread);
  const auto x_there = x.template to<Cuda>();
  const auto weight_there = weight.template to<Cuda>();
  const auto dy_there = dy.template to<Cuda>();
  for (const bool biased : {false, true}) {
    const auto bias = biased ? random_tensor<A>({shapes.bias}, 4) : Tensor<A>();
    const auto bias_there = biased ? bias.template to<Cuda>() : Tensor<A, Cuda>();
    Tensor<T> y(shapes.y);
    Tensor<T, Cuda> y_there(shapes.y);
    forward(x, weight, bias, y);
    forward(x_there, weight_there, bias_there, y_there);
    require_same(y_there, y, slack<T>);
  }
  for (const bool accumulate : {false, true}) {
    auto dx = random_tensor<T>(shapes.x, 5);
    auto dx_there = dx.template to<Cuda>();
    backward_data(dy, weight, dx, accumulate);
    backward_data(dy_there, weight_there, dx_there, accumulate);
    require_same(dx_there, dx, slack<T>);
    auto dweight = random_tensor<A>(shapes.weight, 6);
    auto dweight_there = dweight.template to<Cuda>();
    backward_weight(x, dy, dweight, accumulate);
    backward_weight(x_there, dy_there, dweight_there, accumulate);
    require_close(dweight_there.template to<Cpu>(), as_doubles(dweight), slack<T> * bound<T>());
  }
}

template <typename T>
void check_conv2d(const Shape& image, const Shape& weight, const Conv2dOptions& options) {
  const Extent2d extent = conv2d_extent({image[1], image[2]}, {weight[2], weight[3]}, options);
  check<T>(
      {.x = image, .weight = weight, .y = {image[0], extent.height, extent.width, weight[0]}, .bias = weight[0]},
      [&](const auto& x, const auto& w, const auto& bias, auto& y) { conv2d(x, w, bias, options, y); },
      [&](const auto& dy, const auto& w, auto& dx, bool accumulate) { conv2d_backward_data(dy, w, options, dx, accumulate); },
      [&](const auto& x, const auto& dy, auto& dw, bool accumulate) {
        conv2d_backward_weight(x, dy, options, dw, accumulate);
      });
}

template <typename T>
void check_transposed(const Shape& image, const Shape& weight, const ConvTranspose2dOptions& options) {
  const Extent2d extent = conv_transpose2d_extent({image[1], image[2]}, {weight[2], weight[3]}, options);
  const std::int64_t out = weight[1] * options.groups;
  check<T>(
      {.x = image, .weight = weight, .y = {image[0], extent.height, extent.width, out}, .bias = out},
      [&](const auto& x, const auto& w, const auto& bias, auto& y) { conv_transpose2d(x, w, bias, options, y); },
      [&](const auto& dy, const auto& w, auto& dx, bool accumulate) {
        conv_transpose2d_backward_data(dy, w, options, dx, accumulate);
      },
      [&](const auto& x, const auto& dy, auto& dw, bool accumulate) {
        conv_transpose2d_backward_weight(x, dy, options, dw, accumulate);
      });
}

}  // namespace

TEMPLATE_TEST_CASE("convolutions on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  check_conv2d<T>({4, 28, 28, 32}, {64, 32, 3, 3}, {.padding = 1});
  check_conv2d<T>({2, 32, 32, 3}, {16, 3, 7, 7}, {.stride = 2, .padding = 3});
  check_conv2d<T>({3, 14, 14, 64}, {32, 64, 1, 1}, {.stride = 2});
  check_conv2d<T>({3, 14, 14, 64}, {32, 64, 1, 1}, {});
  check_conv2d<T>({2, 5, 5, 5}, {7, 5, 1, 1}, {});
  check_conv2d<T>({2, 9, 11, 12}, {8, 3, 3, 2}, {.stride = {1, 2}, .padding = 1, .dilation = {2, 1}, .groups = 4});
  check_conv2d<T>({2, 10, 10, 16}, {16, 1, 3, 3}, {.padding = 1, .groups = 16});
  check_conv2d<T>({4, 28, 28, 32}, {32, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 32});
  check_conv2d<T>({3, 7, 7, 96}, {96, 1, 5, 5}, {.padding = 2, .groups = 96});
  check_conv2d<T>({1, 20, 12, 24}, {48, 1, 3, 3}, {.padding = 1, .groups = 24});
  check_conv2d<T>({1, 5, 6, 5}, {7, 5, 2, 3}, {});
  check_conv2d<T>({0, 5, 5, 4}, {4, 4, 3, 3}, {});
}

TEMPLATE_TEST_CASE("transposed convolutions on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  check_transposed<T>({4, 7, 7, 64}, {64, 32, 4, 4}, {.stride = 2, .padding = 1});
  check_transposed<T>({3, 1, 1, 64}, {64, 16, 7, 7}, {});
  check_transposed<T>({2, 5, 4, 6}, {6, 2, 3, 3}, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 3});
}

TEST_CASE("images that are not aligned, and products in TF32") {
  const auto images = random_tensor<float>({3, 3, 3, 3}, 1);
  const auto weight = random_tensor<float>({4, 3, 2, 2}, 2);
  Tensor<float> y({2, 2, 2, 4});
  Tensor<float, Cuda> y_there(y.shape());
  conv2d(images.narrow(1, 2), weight, {}, {}, y);
  conv2d(images.to<Cuda>().narrow(1, 2), weight.to<Cuda>(), {}, {}, y_there);  // 108 bytes into a block
  require_same(y_there, y, slack<float>);
  device::allow_tf32(true);
  conv2d(images.to<Cuda>().narrow(0, 2), weight.to<Cuda>(), {}, {}, y_there);
  device::allow_tf32(false);
  conv2d(images.narrow(0, 2), weight, {}, {}, y);
  require_close(y_there.to<Cpu>(), as_doubles(y), 0x1p-8);
}

TEST_CASE("convolutions on the GPU give the same bits twice") {
  const auto x = random_tensor<bfloat16>({8, 28, 28, 64}, 1).to<Cuda>();
  const auto dy = random_tensor<bfloat16>({8, 28, 28, 64}, 2).to<Cuda>();
  Tensor<float, Cuda> first({64, 64, 3, 3}), second({64, 64, 3, 3});
  conv2d_backward_weight(x, dy, {.padding = 1}, first, false);
  conv2d_backward_weight(x, dy, {.padding = 1}, second, false);
  require_identical(first.to<Cpu>(), second.to<Cpu>());
}
