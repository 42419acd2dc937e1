#include "ops/cuda_compare.hpp"
#include "trireme/ops/pointwise/operators.hpp"

// Functions on elements of a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

void require_same_mask(const Tensor<bool, Cuda>& got, const Tensor<bool>& expected) {
  require_identical(got.to<Cpu>(), expected);
}

struct Shapes {
  Shape left;
  Shape right;
};
const std::vector<Shapes> shapes{{{1000, 33}, {1000, 33}},
                                 {{1000, 33}, {33}},
                                 {{1000, 33}, {1000, 1}},
                                 {{}, {7}},
                                 {{4, 1, 500}, {300, 1}},
                                 {{2, 1, 3, 1, 2, 1}, {2, 1, 2, 1, 2}},
                                 {{0, 3}, {3}}};

}  // namespace

TEMPLATE_TEST_CASE("two operands on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [left, right] : shapes) {
    CAPTURE(left.str(), right.str());
    const auto a = random_tensor<T>(left, 1);
    const auto b = random_tensor<T>(right, 2);
    const auto a_there = a.template to<Cuda>();
    const auto b_there = b.template to<Cuda>();
    const Shape shape = broadcast_shape("test", left, right);
    const auto dy = random_tensor<T>(shape, 3);
    for (const auto kind :
         {Binary::add, Binary::subtract, Binary::multiply, Binary::divide, Binary::minimum, Binary::maximum}) {
      CAPTURE(std::string(name_of(kind)));
      require_same(pointwise(kind, a_there, b_there), pointwise(kind, a, b));
      require_same(pointwise(kind, 2, b_there), pointwise(kind, 2, b));
    }
    for (const Side side : {Side::left, Side::right}) {
      Tensor<T> dx(side == Side::left ? left : right);
      Tensor<T, Cuda> dx_there(dx.shape());
      binary_backward(Binary::multiply, side, a, b, dy, dx, false);
      binary_backward(Binary::multiply, side, a_there, b_there, dy.template to<Cuda>(), dx_there, false);
      require_same(dx_there, dx, 100);
    }
    require_same_mask(lt(a_there, b_there), lt(a, b));
    require_same(where(lt(a_there, b_there), a_there, 2), where(lt(a, b), a, 2));
    require_same_mask(logical_or(lt(a_there, b_there), logical_not(isfinite(a_there))),
                      logical_or(lt(a, b), logical_not(isfinite(a))));
  }
}

TEMPLATE_TEST_CASE("one operand on the GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  auto x = random_tensor<T>({3001}, 1, 2);
  const auto dy = random_tensor<T>({3001}, 2);
  for (int number = 0; number <= static_cast<int>(Unary::logsigmoid); ++number) {
    const auto kind = static_cast<Unary>(number);
    CAPTURE(std::string(name_of(kind)));
    if (kind == Unary::log) x = abs(x) + 0.25;  // from here on all have a domain, or are for any number
    const UnaryNumbers numbers{.first = -0.5, .second = 1.5};
    require_same(pointwise(kind, x.template to<Cuda>(), numbers), pointwise(kind, x, numbers), 10);
    Tensor<T> dx(x.shape());
    Tensor<T, Cuda> dx_there(x.shape());
    unary_backward(kind, numbers, x, dy, dx, false);
    unary_backward(kind, numbers, x.template to<Cuda>(), dy.template to<Cuda>(), dx_there, false);
    require_same(dx_there, dx, 10);
  }
}

TEST_CASE("whole numbers and sums on the GPU") {
  const auto i = Tensor<std::int32_t>::from({2, 3}, {7, -7, 3, 0, 5, -2});
  const auto j = Tensor<std::int32_t>::from({3}, {2, 0, -1});
  for (const auto kind : {Binary::add, Binary::divide, Binary::pow, Binary::maximum}) {
    require_identical(pointwise(kind, i.to<Cuda>(), j.to<Cuda>()).to<Cpu>(), pointwise(kind, i, j));
  }
  require_identical(clamp(i.to<Cuda>(), -2, 4).to<Cpu>(), clamp(i, -2, 4));
  for (const Shape& to : {Shape{}, Shape{5}, Shape{70, 1}, Shape{3, 1, 5}, Shape{3, 1, 1}}) {
    const auto x = random_tensor<float>({3, 70, 5}, 1);
    Tensor<float> y(to);
    Tensor<float, Cuda> y_there(to);
    sum_to_shape(x, y);
    sum_to_shape(x.to<Cuda>(), y_there);
    require_same(y_there, y, 100);
  }
}
