#include "ops/pointwise/unary_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/pointwise/functions.hpp"

// Elementwise kernels of a GPU, run by the host, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Shapes {
  Shape left;
  Shape right;
};
const std::vector<Shapes> shapes{
    {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{4, 1, 5}, {3, 1}}, {{}, {7}}, {{2, 1, 3, 1, 2, 1}, {2, 1, 2, 1, 2}}};

template <typename T>
OperandArgument<T> argument(const Tensor<T>& x) {
  return {.data = x.data()};
}

void each(std::int64_t count, const auto& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace

TEMPLATE_TEST_CASE("two operands by threads", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [left, right] : shapes) {
    CAPTURE(left.str(), right.str());
    const auto a = random_tensor<T>(left, 1);
    const auto b = random_tensor<T>(right, 2);
    const Shape shape = broadcast_shape("test", left, right);
    const Broadcast plan(shape, {left, right});
    const auto dy = random_tensor<T>(shape, 3);
    for (const auto kind :
         {Binary::add, Binary::subtract, Binary::multiply, Binary::divide, Binary::minimum, Binary::maximum}) {
      CAPTURE(std::string(name_of(kind)));
      Tensor<T> c(shape);
      each(plan.numel, BinaryElement<T>{plan, kind, argument(a), argument(b), c.data()});
      require_identical(c, pointwise(kind, a, b));
      for (const Side side : {Side::left, Side::right}) {
        const Shape& own = side == Side::left ? left : right;
        Tensor<T> products = random_tensor<T>(shape, 4);
        Tensor<T> expected = products.clone();
        each(plan.numel,
             BinarySlopeElement<T>{plan, kind, side, argument(a), argument(b), dy.data(), products.data(), own == shape});
        if (own == shape) {
          binary_backward(kind, side, a, b, dy, expected, true);
          require_close(products, as_doubles(expected), rounding<T>(1e-6));
        } else {
          Tensor<T> sums(own);
          sum_to_shape(products, sums);
          Tensor<T> expected_sums(own);
          binary_backward(kind, side, a, b, dy, expected_sums, false);
          require_close(sums, as_doubles(expected_sums), 4 * rounding<T>(1e-5));
        }
      }
    }
    const Tensor<bool> mask(shape);
    each(plan.numel, CompareElement<T>{plan, Comparison::lt, argument(a), argument(b), mask.data()});
    require_identical(mask, lt(a, b));
  }
}

TEST_CASE("numbers by threads") {
  const auto a = random_tensor<float>({5}, 1);
  const Broadcast plan({5}, {Shape{}, Shape{5}});
  Tensor<float> c({5});
  each(5, BinaryElement<float>{plan, Binary::subtract, {.number = 2.5F}, argument(a), c.data()});
  require_identical(c, subtract(2.5F, a));
}

TEST_CASE("where and masks by threads") {
  const auto mask = gt(random_tensor<float>({3, 1}, 1), 0);
  const auto other = gt(random_tensor<float>({4}, 2), 0);
  const auto a = Tensor<std::uint32_t>::from({4}, {1, 2, 3, 4});
  const Broadcast plan({3, 4}, {Shape{3, 1}, Shape{4}, Shape{}});
  const Tensor<std::uint32_t> c({3, 4});
  each(12, WhereElement<std::uint32_t>{plan, mask.data(), argument(a), {.number = 9}, c.data()});
  const Tensor<bool> both({3, 4});
  const auto bytes = [](const Tensor<bool>& x) { return reinterpret_cast<std::uint8_t*>(x.data()); };
  each(12, LogicalElement{plan, Logical::logical_xor, bytes(mask), bytes(other), bytes(both)});
  require_identical(both, logical_xor(mask, other));
  for (std::int64_t i = 0; i < 12; ++i) CHECK(c.data()[i] == (mask.data()[i / 4] ? i % 4 + 1 : 9));
}

TEMPLATE_TEST_CASE("one operand by threads", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = random_tensor<T>({50}, 1, 2);
  const auto dy = random_tensor<T>({50}, 2);
  for (const auto kind : {Unary::abs, Unary::clamp, Unary::exp, Unary::sin, Unary::round, Unary::elu, Unary::selu, Unary::mish,
                          Unary::hardswish, Unary::logsigmoid}) {
    CAPTURE(std::string(name_of(kind)));
    using A = Accumulate<T>;
    const UnaryNumbers numbers{.first = -0.5, .second = 1.5};
    const Tensor<T> y({50});
    each(50, UnaryElement<T>{kind, A(-0.5), A(1.5), x.data(), y.data()});
    require_close(y, as_doubles(pointwise(kind, x, numbers)), rounding<T>(1e-6));
    const Tensor<T> dx = random_tensor<T>({50}, 3);
    Tensor<T> expected = dx.clone();
    each(50, UnarySlopeElement<T>{kind, A(-0.5), A(1.5), x.data(), dy.data(), dx.data(), true});
    unary_backward(kind, numbers, x, dy, expected, true);
    require_close(dx, as_doubles(expected), rounding<T>(1e-6));
  }
  const Tensor<bool> mask({50});
  each(50, TestElement<T>{FloatTest::isfinite, x.data(), mask.data()});
  require_identical(mask, isfinite(x));
}
