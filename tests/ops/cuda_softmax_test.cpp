#include "ops/cuda_compare.hpp"
#include "trireme/ops/reduce/softmax.hpp"

// The softmax of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("softmax on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t width : {1, 10, 64, 1001, 2048, 4096, 50'304}) {
    CAPTURE(width);
    const Shape shape{3, 5, width};
    const auto x = random_tensor<T>(shape, 1, 4);
    const auto dy = random_tensor<T>(shape, 2);
    for (const bool logarithm : {false, true}) {
      Tensor<T> y(shape);
      Tensor<T, Cuda> y_there = x.template to<Cuda>();
      logarithm ? log_softmax(x, y) : softmax(x, y);
      logarithm ? log_softmax(y_there, y_there) : softmax(y_there, y_there);
      require_same(y_there, y, 10);
      for (const bool accumulate : {false, true}) {
        Tensor<T> dx = dy.clone();
        Tensor<T, Cuda> dx_there = dy.template to<Cuda>();
        const auto y_of_cpu = y.template to<Cuda>();
        if (logarithm) {
          log_softmax_backward(y, dy, dx, accumulate);
          log_softmax_backward(y_of_cpu, dy.template to<Cuda>(), dx_there, accumulate);
        } else {
          softmax_backward(y, dy, dx, accumulate);
          softmax_backward(y_of_cpu, dy.template to<Cuda>(), dx_there, accumulate);
        }
        require_same(dx_there, dx, 100);
      }
    }
  }
}
