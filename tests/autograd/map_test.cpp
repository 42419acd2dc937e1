#include "trireme/autograd/operations/map.hpp"

#include <limits>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr auto swiglu = [](auto gate, auto up) { return gate * sigmoid(gate) * up; };

Tensor<double> positive(const Shape& shape, std::uint64_t stream) {
  Tensor<double> x = random(shape, stream);
  for (double& element : x.span()) element = std::abs(element) + 0.5;
  return x;
}

template <typename T>
struct Gradients {
  Tensor<T> value;
  std::vector<Tensor<T>> of_operands;
};

// Of sum(function(operands...) * upstream).
template <typename T>
Gradients<T> gradients(const std::vector<Tensor<T>>& operands, const auto& function) {
  const Tape tape;
  Gradients<T> result;
  result.of_operands.resize(operands.size());
  std::vector<Variable<T>> watched;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    watched.push_back(watch(operands[k], [&result, k](const Tensor<T>& dx) { result.of_operands[k] = dx; }));
  }
  const Variable<T> y = function(watched);
  result.value = y.value();
  y.backward(random<T>(y.shape(), 9));
  return result;
}

template <typename T>
void require_near(const Tensor<T>& got, const Tensor<T>& expected, double tolerance) {
  REQUIRE(got.shape() == expected.shape());
  for (std::size_t i = 0; i < got.span().size(); ++i) {
    const auto wanted = static_cast<double>(expected.span()[i]);
    INFO("element " << i);
    REQUIRE(std::abs(static_cast<double>(got.span()[i]) - wanted) <= tolerance * (1 + std::abs(wanted)));
  }
}

}  // namespace

TEST_CASE("map: derivatives of every function against finite differences") {
  const auto check = [](const testing::CheckedFunction& function, const std::vector<Tensor<double>>& inputs) {
    expect_passed(testing::check_gradients(function, inputs));
  };
  const std::vector<Tensor<double>> two{random({3, 4}, 1), random({3, 4}, 2)};
  const std::vector<Tensor<double>> above_zero{positive({3, 4}, 1), positive({3, 4}, 2)};
  check([](const Inputs& in) { return map(swiglu, in[0], in[1]); }, two);
  check(
      [](const Inputs& in) { return map([](auto x, auto y) { return exp(x) * sin(y) - cos(x) / (2 + y * y); }, in[0], in[1]); },
      two);
  check([](const Inputs& in) { return map([](auto x, auto y) { return tanh(x) + erf(y) * expm1(-x); }, in[0], in[1]); }, two);
  check([](const Inputs& in) { return map([](auto x, auto y) { return log(x) * sqrt(y) + log1p(x * y); }, in[0], in[1]); },
        above_zero);
  check([](const Inputs& in) { return map([](auto x, auto y) { return pow(x, y) + pow(y, 3) - pow(x, 0.5F); }, in[0], in[1]); },
        above_zero);
  check([](const Inputs& in) { return map([](auto x, auto y) { return max(x, y) * min(x, 0.25) + abs(y); }, in[0], in[1]); },
        two);
  check([](const Inputs& in) { return map([](auto x, auto y) { return x > y ? x * y : -y; }, in[0], in[1]); }, two);
  check([](const Inputs& in) { return map([](auto x, auto y) { return select(x <= 0.5, x, 1 - y / x); }, in[0], in[1]); }, two);
  check(
      [](const Inputs& in) {
        return map(
            [factor = 1.5](auto x) {
              auto power = x;
              for (int i = 0; i < 3; ++i) power *= factor * x;
              power += x;
              power -= 2;
              power /= 3 + x * x;
              return +power;
            },
            in[0]);
      },
      {two[0]});
}

TEST_CASE("map: operands are repeated, and get the sums of their gradients") {
  const auto check = [](const std::vector<Shape>& shapes) {
    std::vector<Tensor<double>> inputs;
    for (std::size_t k = 0; k < shapes.size(); ++k) inputs.push_back(random(shapes[k], k));
    expect_passed(testing::check_gradients(
        [](const Inputs& in) {
          return map([](auto x, auto y, auto z) { return x * y - sigmoid(z) * x; }, in[0], in[1], in[2]);
        },
        inputs));
  };
  check({{2, 3}, {3}, {2, 1}});
  check({{}, {3}, {2, 1, 1}});
  check({{2, 1, 2}, {2, 1}, {1, 1, 2}});
  expect_passed(testing::check_gradients([](const Inputs& in) { return map(swiglu, in[0], in[0]); }, {random({5}, 1)}));
}

TEMPLATE_TEST_CASE("map: the same as composed operations", "", float, double, bfloat16, float16) {
  using T = TestType;
  const double tolerance = std::is_same_v<T, bfloat16>  ? 0.03
                           : std::is_same_v<T, float16> ? 0.004
                           : sizeof(T) == 4             ? 2e-6
                                                        : 1e-14;
  for (const auto& [gate, up] :
       {std::pair<Shape, Shape>{{7, 1500}, {7, 1500}}, {{40, 300}, {300}}, {{900, 3}, {3}}, {{5}, {}}}) {
    const std::vector<Tensor<T>> operands{random<T>(gate, 1), random<T>(up, 2)};
    const auto mapped = gradients<T>(operands, [](const auto& x) { return map(swiglu, x[0], x[1]); });
    const auto composed = gradients<T>(operands, [](const auto& x) { return silu(x[0]) * x[1]; });
    const double of_sums = static_cast<double>(operands[0].numel() / operands[1].numel());
    require_near(mapped.value, composed.value, tolerance);
    require_near(mapped.of_operands[0], composed.of_operands[0], tolerance);
    require_near(mapped.of_operands[1], composed.of_operands[1], tolerance * std::sqrt(of_sums));
  }
}

TEST_CASE("map: gradients are added to what is there, and constants get none") {
  const std::vector<Tensor<float>> x{random<float>({2000}, 1), random<float>({2000}, 2)};
  const auto once = gradients<float>(x, [](const auto& in) { return map(swiglu, in[0], in[1]); });
  const auto twice = gradients<float>(x, [](const auto& in) { return map(swiglu, in[0], in[1]) + map(swiglu, in[0], in[1]); });
  for (std::size_t i = 0; i < 2000; ++i) {
    CHECK(twice.of_operands[0].span()[i] == 2 * once.of_operands[0].span()[i]);
  }
  const auto half = gradients<float>(x, [&](const auto& in) { return map(swiglu, in[0], x[1]); });
  CHECK(elements(half.of_operands[0]) == elements(once.of_operands[0]));
  CHECK_FALSE(half.of_operands[1].defined());
  CHECK(elements(map(swiglu, x[0], x[1])) == elements(once.value));  // of tensors, without a tape
}

TEST_CASE("map: what is not taken, NaN and infinity") {
  constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<Tensor<float>> x{Tensor<float>::from({4}, {-1, 4, no_number, infinity}),
                                     Tensor<float>::from({4}, {2, infinity, 2, 2})};
  const auto roots = gradients<float>(
      x, [](const auto& in) { return map([](auto a, auto) { return select(a > 0, sqrt(a), 0); }, in[0], in[1]); });
  CHECK(elements(roots.value) == std::vector<float>{0, 2, 0, infinity});
  CHECK(roots.of_operands[0].at(0) == 0);
  CHECK(roots.of_operands[0].at(3) == 0);
  const auto products =
      gradients<float>(x, [](const auto& in) { return map([](auto a, auto b) { return a * b; }, in[0], in[1]); });
  const auto composed = gradients<float>(x, [](const auto& in) { return in[0] * in[1]; });
  for (const std::size_t k : {0, 1}) {
    for (const std::size_t i : {0, 1, 3}) CHECK(products.of_operands[k].span()[i] == composed.of_operands[k].span()[i]);
  }
  CHECK(std::isnan(products.of_operands[1].at(2)));
  const auto equal = gradients<double>({Tensor<double>::full({1}, 2), Tensor<double>::full({1}, 2)}, [](const auto& in) {
    return map([](auto a, auto b) { return max(a, b); }, in[0], in[1]);
  });
  CHECK(equal.of_operands[0].item() == equal.of_operands[1].item());
}

TEST_CASE("map: many operands, none that matter, no elements") {
  const auto x = Tensor<float>::full({3}, 1);
  const auto sum = map([](auto... all) { return (all + ...); }, x, x, x, x, x, x, x, x);
  CHECK(elements(sum) == std::vector<float>(3, 8));
  CHECK(elements(map([](auto) { return 7; }, x)) == std::vector<float>(3, 7));
  CHECK(elements(map([](auto a) { return a > 0.5; }, x)) == std::vector<float>(3, 1));
  CHECK(map(swiglu, Tensor<float>({0, 3}), x).shape() == Shape{0, 3});
  const auto empty = gradients<float>({Tensor<float>({0, 3}), x}, [](const auto& in) { return map(swiglu, in[0], in[1]); });
  CHECK(elements(empty.of_operands[1]) == std::vector<float>(3, 0));
}

TEST_CASE("map: errors") {
  const auto x = Tensor<float>::full({3}, 1);
  CHECK_THROWS_WITH(map(swiglu, Variable<float>(x), Variable<float>()), "map: operand 2 of 2 is undefined");
  CHECK_THROWS_WITH(map(swiglu, Tensor<float>(), x), "map: operand 1 of 2 is undefined");
  CHECK_THROWS_WITH(
      map(swiglu, x, Tensor<float>({2})),
      "map: the operands have the shapes [3] and [2]: in dim -1 they have 3 and 2 elements, but need equally many, "
      "or 1");
}
