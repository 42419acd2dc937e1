#include "trireme/ops/resize/interpolate.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Resized images and their gradients, against values of torch 2.15.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  InterpolateOptions options;
  Shape shape;
  Doubles y;
  Doubles dx;  // where dy is 0, 1, 2, ...
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{.size = {2, 6}}, {1, 1, 2, 6}, {0, 0, 1, 4, 4, 9, 16, 16, 25, 36, 36, 49}, {1, 2, 7, 5, 13, 8, 19, 11, 0, 0, 0, 0}},
      {{.scale = 2},
       {1, 1, 6, 8},
       {0,  0,  1,  1,  4,  4,  9,  9,  0,  0,  1,  1,  4,   4,   9,   9,   16, 16, 25, 25, 36,  36,  49,  49,
        16, 16, 25, 25, 36, 36, 49, 49, 64, 64, 81, 81, 100, 100, 121, 121, 64, 64, 81, 81, 100, 100, 121, 121},
       {18, 26, 34, 42, 82, 90, 98, 106, 146, 154, 162, 170}},
      {{.scale = {1.5, 0.7}}, {1, 1, 4, 2}, {0, 1, 0, 1, 16, 25, 64, 81}, {2, 4, 0, 0, 4, 5, 0, 0, 6, 7, 0, 0}},
      {{.size = {5, 3}, .mode = InterpolateMode::bilinear},
       {1, 1, 5, 3},
       {0.1666666667, 2.5, 8.166666667, 7.1, 13.7, 23.63333333, 17.5, 30.5, 46.83333333, 47.1, 66.5, 89.23333333, 66.83333333,
        90.5, 117.5},
       {1.5, 2, 2.533333333, 4.166666667, 9, 8.1, 8.7, 12, 14.5, 12.4, 12.93333333, 17.16666667}},
      {{.size = {5, 3}, .mode = InterpolateMode::bilinear, .align_corners = true},
       {1, 1, 5, 3},
       {0, 2.5, 9, 8, 16.5, 29, 16, 30.5, 49, 40, 60.5, 85, 64, 90.5, 121},
       {1.5, 1.5, 1.5, 4.5, 12, 7, 7, 16, 16.5, 9, 9, 19.5}},
      {{.scale = {0.5, 1.7}, .mode = InterpolateMode::bilinear},
       {1, 1, 1, 6},
       {8, 9.911764706, 12.85294118, 16.91176471, 21.32352941, 26.61764706},
       {0.3382352941, 1.823529412, 3.205882353, 2.132352941, 0.3382352941, 1.823529412, 3.205882353, 2.132352941, 0, 0, 0, 0}},
      {{.scale = {0.5, 1.7}, .mode = InterpolateMode::bilinear, .align_corners = true},
       {1, 1, 1, 6},
       {0, 0.6, 1.6, 3.4, 6, 9},
       {0.4, 2.8, 5.2, 6.6, 0, 0, 0, 0, 0, 0, 0, 0}},
      {{.size = 1, .mode = InterpolateMode::bilinear}, {1, 1, 1, 1}, {30.5}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
  };
  return all;
}

// 0, 1, 4, 9, ...
template <typename T>
Tensor<T> squares() {
  Tensor<T> x({1, 1, 3, 4});
  for (int i = 0; i < 12; ++i) x.data()[i] = static_cast<T>(static_cast<float>(i * i));
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("images of another size are torch's", "", float, double) {
  using T = TestType;
  for (std::size_t number = 0; number < cases().size(); ++number) {
    const Case& wanted = cases()[number];
    CAPTURE(number);
    const auto x = squares<T>();
    const auto y = interpolate(x, wanted.options);
    CHECK(y.shape() == wanted.shape);
    require_close(y, wanted.y, tolerance<T>(1e-5) + 1e-9);
    Tensor<T> dy(y.shape());
    for (std::int64_t i = 0; i < dy.numel(); ++i) dy.data()[i] = static_cast<T>(i);
    const auto interpolation = interpolation_of(x.shape(), wanted.options);
    Tensor<T> dx(x.shape());
    interpolate_backward(interpolation, dy, dx, false);
    require_close(dx, wanted.dx, tolerance<T>(1e-5) + 1e-9);
    interpolate_backward(interpolation, dy, dx, true);
    require_close(dx, add(wanted.dx, wanted.dx), tolerance<T>(1e-5) + 1e-9);
  }
}

TEMPLATE_TEST_CASE("images of half types", "", bfloat16, float16) {
  const auto y =
      interpolate(Tensor<TestType>::full({2, 1, 3, 5}, TestType(3.0f)), {.scale = 3, .mode = InterpolateMode::bilinear});
  CHECK(y.shape() == Shape{2, 1, 9, 15});
  for (const TestType pixel : y.span()) CHECK(static_cast<float>(pixel) == 3);
}

TEST_CASE("images are the same with any number of threads, and each by itself") {
  const auto x = random_tensor<float>({3, 5, 40, 50}, 1);
  const InterpolateOptions options{.size = {77, 31}, .mode = InterpolateMode::bilinear};
  const auto interpolation = interpolation_of(x.shape(), options);
  const auto expected = interpolate(x, options);
  const auto dy = random_tensor<float>(expected.shape(), 2);
  Tensor<float> gradient(x.shape());
  interpolate_backward(interpolation, dy, gradient, false);
  with_threads(3, [&] {
    require_identical(interpolate(x, options), expected);
    Tensor<float> dx(x.shape());
    interpolate_backward(interpolation, dy, dx, false);
    require_identical(dx, gradient);
  });
  const auto last = interpolate(x.narrow(2, 1), options);
  require_identical(last, expected.narrow(2, 1));
}

TEST_CASE("what is not finite stays in its pixels") {
  auto x = squares<float>();
  x.at(0, 0, 1, 2) = std::numeric_limits<float>::infinity();
  const auto y = interpolate(x, {.scale = 2});
  CHECK(y.at(0, 0, 2, 4) == std::numeric_limits<float>::infinity());
  CHECK(y.at(0, 0, 2, 3) == 25);
}

TEST_CASE("images that can't be resized say why") {
  const auto x = squares<float>();
  CHECK(interpolate(Tensor<float>({0, 2, 3, 4}), {.scale = 2}).shape() == Shape{0, 2, 6, 8});
  CHECK_THROWS_WITH(interpolate(x, {}), "interpolate: give either a size or a scale");
  CHECK_THROWS_WITH(interpolate(x, {.size = 2, .scale = 2}), "interpolate: give either a size or a scale");
  CHECK_THROWS_WITH(interpolate(x, {.size = {2, 0}}), "interpolate: 4 pixels can't become 0");
  CHECK_THROWS_WITH(interpolate(x, {.scale = 0.3}), "interpolate: 3 pixels can't become 0");
  CHECK_THROWS_WITH(interpolate(x, {.scale = -2}), "interpolate: the scale -2 is not above 0");
  CHECK_THROWS_WITH(interpolate(x, {.scale = 2, .align_corners = true}),
                    "interpolate: align_corners belongs to InterpolateMode::bilinear");
  CHECK_THROWS_WITH(interpolate(Tensor<float>({3, 4}), {.scale = 2}),
                    "interpolate: x [3, 4] is not [batch, channels, height, width]");
  CHECK_THROWS_WITH(interpolate(Tensor<float>({1, 1, 0, 4}), {.scale = 2}), "interpolate: 0 pixels can't become 0");
  CHECK_THROWS_WITH(interpolate(Tensor<float>(), {.scale = 2}), "interpolate: x is undefined");
}
