#include "ops/convolution/convolution_body.hpp"
#include "ops/convolution/convolution_checks.hpp"
#include "ops/matmul/add_bias_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/convolution/convolution.hpp"

// The plain convolution kernels of a GPU, run by the host, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename Body>
void run(std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

template <typename T>
void check(const Shape& image, const Shape& weight_shape, const Conv2dOptions& options) {
  CAPTURE(image.str(), weight_shape.str(), options.groups);
  const Extent2d extent = conv2d_extent({image[1], image[2]}, {weight_shape[2], weight_shape[3]}, options);
  const Shape shape{image[0], extent.height, extent.width, weight_shape[0]};
  const ConvolutionSizes sizes{convolution_shape("test", image, weight_shape, shape, options)};
  const auto x = random_tensor<T>(image, 1);
  const auto weight = random_tensor<T>(weight_shape, 2);
  const auto dy = random_tensor<T>(shape, 3);

  Tensor<T> expected(shape);
  const Tensor<T> y(shape);
  conv2d(x, weight, {}, options, expected);
  run(y.numel(), ConvolutionForward<T>{sizes, x.data(), weight.data(), y.data()});
  require_close(y, as_doubles(expected), rounding<T>(1e-5));

  Tensor<T> expected_dx(image);
  const Tensor<T> dx(image);
  conv2d_backward_data(dy, weight, options, expected_dx, false);
  run(dx.numel(), ConvolutionDataGradient<T>{sizes, dy.data(), weight.data(), dx.data()});
  require_close(dx, as_doubles(expected_dx), rounding<T>(1e-5));

  using A = Accumulate<T>;
  Tensor<A> expected_dweight(weight_shape);
  conv2d_backward_weight(x, dy, options, expected_dweight, false);
  for (const int team_size : {1, 3}) {
    const Tensor<A> dweight(weight_shape);
    run_rows(team_size, dweight.numel(), ConvolutionWeightGradient<T>{sizes, x.data(), dy.data(), dweight.data()});
    require_close(dweight, as_doubles(expected_dweight), tolerance<A>(1e-4));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("convolutions by the kernels of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  check<T>({2, 6, 5, 3}, {4, 3, 3, 3}, {.padding = 1});
  check<T>({1, 7, 9, 4}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}, .groups = 2});
  check<T>({2, 5, 5, 4}, {8, 1, 3, 3}, {.stride = 3, .padding = 2, .dilation = 2, .groups = 4});
}

TEMPLATE_TEST_CASE("a bias by the kernels of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  constexpr int pack = 16 / sizeof(T);
  const auto images = random_tensor<T>({2, 3, 3, 16}, 1);
  const auto bias = random_tensor<Accumulate<T>>({16}, 2);
  Doubles expected = as_doubles(images);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(bias.data()[i % 16]);
  const auto single = images.clone();
  run(images.numel() / pack, AddBias<pack, T>{images.data(), bias.data(), 16});
  run(single.numel(), AddBias<1, T>{single.data(), bias.data(), 16});
  require_close(images, expected, rounding<T>(1e-6));
  require_identical(single, images);
}
