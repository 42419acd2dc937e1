#include "ops/cuda_compare.hpp"
#include "trireme/ops/array/transpose.hpp"

// The transpose of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("transpose on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  struct Case {
    Shape shape;
    int first;
    int second;
  };
  for (const auto& [shape, first, second] :
       {Case{{1, 1}, 0, 1}, Case{{33, 70}, 0, 1}, Case{{1000, 3001}, 1, 0}, Case{{2, 3, 40, 65}, 1, -1},
        Case{{4, 128, 12, 64}, 1, 2}, Case{{4, 5, 6, 3}, 0, 2}, Case{{4, 0, 6}, 0, 2}, Case{{4, 5, 6}, 1, 1}}) {
    CAPTURE(shape.numel(), first, second);
    const auto x = random_tensor<T>(shape, 1);
    Tensor<T> y(transposed_shape(shape, first, second));
    Tensor<T, Cuda> y_there(y.shape());
    transpose(x, first, second, y);
    transpose(x.template to<Cuda>(), first, second, y_there);
    require_identical(y_there.template to<Cpu>(), y);
  }
}
