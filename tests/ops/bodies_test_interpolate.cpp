#include "ops/resize/interpolate_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/resize/interpolate.hpp"

// The resized images of a GPU, run by the host, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("images resized by threads", "", float, double, bfloat16) {
  using T = TestType;
  const auto bilinear = InterpolateMode::bilinear;
  for (const InterpolateOptions& options : {InterpolateOptions{.size = {11, 3}},
                                            {.scale = {0.4, 3.3}},
                                            {.size = {19, 4}, .mode = bilinear},
                                            {.scale = {0.4, 3.3}, .mode = bilinear},
                                            {.scale = 0.21, .mode = bilinear},
                                            {.size = {1, 40}, .mode = bilinear, .align_corners = true},
                                            {.size = {9, 2}, .mode = bilinear, .align_corners = true}}) {
    CAPTURE(options.size.height, options.scale.height);
    const auto x = random_tensor<T>({2, 2, 7, 5}, 1);
    const Interpolation sizes = interpolation_of(x.shape(), options);
    const auto expected = interpolate(x, options);
    const Tensor<T> y(expected.shape());
    for (std::int64_t i = 0; i < y.numel(); ++i) InterpolatePixel<T>{sizes, x.data(), y.data()}(i);
    require_close(y, as_doubles(expected), rounding<T>(1e-6));
    const auto dy = random_tensor<T>(y.shape(), 2);
    Tensor<T> gradient = random_tensor<T>(x.shape(), 3);
    const Tensor<T> dx = gradient.clone();
    for (const bool accumulate : {true, false}) {
      interpolate_backward(sizes, dy, gradient, accumulate);
      for (std::int64_t i = 0; i < dx.numel(); ++i) InterpolateBackward<T>{sizes, dy.data(), dx.data(), accumulate}(i);
      require_close(dx, as_doubles(gradient), rounding<T>(1e-5));
    }
  }
}
