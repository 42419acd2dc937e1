#include "ops/reduce/softmax_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/reduce/softmax.hpp"

// The softmax of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <int Width, bool logarithm, typename T>
void check(std::int64_t rows, std::int64_t width, int size) {
  CAPTURE(Width, logarithm, rows, width, size);
  auto x = random_tensor<T>({rows, width}, 1, 4);
  if (!logarithm) x.data()[0] = static_cast<T>(-std::numeric_limits<float>::infinity());
  Tensor<T> expected(x.shape());
  logarithm ? log_softmax(x, expected) : softmax(x, expected);
  const Tensor<T> y = x.clone();
  run_rows(size, rows, SoftmaxRow<Width, logarithm, T>{y.data(), y.data(), width});
  require_close(y, as_doubles(expected), rounding<T>(2e-6));
  if (!logarithm && width > 1) CHECK(static_cast<float>(y.data()[0]) == 0);

  const auto dy = random_tensor<T>(x.shape(), 2);
  for (const bool accumulate : {false, true}) {
    Tensor<T> expected_dx = random_tensor<T>(x.shape(), 3);
    const Tensor<T> dx = expected_dx.clone();
    const auto backward = logarithm ? log_softmax_backward<T, Cpu> : softmax_backward<T, Cpu>;
    backward(expected, dy, expected_dx, accumulate);
    run_rows(size, rows, SoftmaxGradientRow<Width, logarithm, T>{expected.data(), dy.data(), dx.data(), accumulate, width});
    require_close(dx, as_doubles(expected_dx), rounding<T>(2e-6));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("softmax by teams", "", float, double, bfloat16, float16) {
  for (const int size : {1, 3}) {
    check<8, false, TestType>(5, 64, size);
    check<8, true, TestType>(5, 64, size);
    check<1, false, TestType>(4, 11, size);
    check<1, true, TestType>(4, 1, size);
  }
}
