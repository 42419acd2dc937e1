#include "ops/cuda_compare.hpp"
#include "trireme/ops/resize/interpolate.hpp"

// Resized images on a GPU, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("images resized on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = random_tensor<T>({2, 3, 37, 50}, 1);
  for (const InterpolateOptions& options : {InterpolateOptions{.size = {70, 31}},
                                            {.scale = {0.3, 2.7}, .mode = InterpolateMode::bilinear},
                                            {.size = {70, 31}, .mode = InterpolateMode::bilinear, .align_corners = true}}) {
    const Interpolation sizes = interpolation_of(x.shape(), options);
    const auto y = interpolate(x, options);
    require_same(interpolate(x.template to<Cuda>(), options), y, 2);
    const auto dy = random_tensor<T>(y.shape(), 2);
    for (const bool accumulate : {false, true}) {
      Tensor<T> dx = x.clone();
      auto dx_there = x.template to<Cuda>();
      interpolate_backward(sizes, dy, dx, accumulate);
      interpolate_backward(sizes, dy.template to<Cuda>(), dx_there, accumulate);
      require_same(dx_there, dx, 10);
    }
  }
}
