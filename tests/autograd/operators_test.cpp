#include "trireme/autograd/composed/operators.hpp"

#include <limits>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

using Floats = std::vector<float>;

template <typename T>
Variable<T> variable(const Shape& shape, const Floats& values) {
  Tensor<T> tensor(shape);
  for (std::size_t at = 0; at < values.size(); ++at) tensor.span()[at] = static_cast<T>(values[at]);
  return tensor;
}
template <typename T>
Floats values(const Variable<T>& x) {
  Floats result;
  for (const T element : x.value().span()) result.push_back(static_cast<float>(element));
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("operators compute what they say, with numbers on either side", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto a = variable<T>({2, 2}, {1, -2, 3, 0.5F});
  const auto b = variable<T>({2, 2}, {4, 0.5F, -2, 2});
  STATIC_REQUIRE(std::is_same_v<decltype(a + b), Variable<T>>);
  STATIC_REQUIRE(std::is_same_v<decltype(a * 2), Variable<T>>);
  CHECK(values(a + b) == Floats{5, -1.5F, 1, 2.5F});
  CHECK(values(a - b) == Floats{-3, -2.5F, 5, -1.5F});
  CHECK(values(a * b) == Floats{4, -1, -6, 1});
  CHECK(values(a / b) == Floats{0.25F, -4, -1.5F, 0.25F});
  CHECK(values(-a) == Floats{-1, 2, -3, -0.5F});
  CHECK(values(a + 1) == Floats{2, -1, 4, 1.5F});
  CHECK(values(1.0 + a) == Floats{2, -1, 4, 1.5F});
  CHECK(values(a - 1.5F) == Floats{-0.5F, -3.5F, 1.5F, -1});
  CHECK(values(1 - a) == Floats{0, 3, -2, 0.5F});
  CHECK(values(a * 2) == Floats{2, -4, 6, 1});
  CHECK(values(std::int64_t{-2} * a) == Floats{-2, 4, -6, -1});
  CHECK(values(a / 2) == Floats{0.5F, -1, 1.5F, 0.25F});
  CHECK(values(2 / b) == Floats{0.5F, 4, -1, 1});
  CHECK(values(a * T(2)) == Floats{2, -4, 6, 1});
  CHECK(values(a + b * 2 - a / b) == values(subtract(add(a, scale(b, Accumulate<T>(2))), divide(a, b))));
}

TEST_CASE("dividing by zero gives what floats give") {
  const auto a = variable<float>({3}, {1, -1, 0});
  const auto zero = variable<float>({3}, {0, 0, 0});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto& y : {a / zero, a / 0, a / 0.0}) {
    CHECK(values(y)[0] == infinity);
    CHECK(values(y)[1] == -infinity);
    CHECK(std::isnan(values(y)[2]));
  }
  CHECK(values(1 / zero) == Floats(3, infinity));
}

TEST_CASE("gradients of operators with numbers") {
  const Tensor<double> away_from_zero = random({2, 3}, 1);
  for (double& element : away_from_zero.span()) element += element < 0 ? -0.5 : 0.5;
  const auto check = [&](const testing::CheckedFunction& function) {
    expect_passed(testing::check_gradients(function, {away_from_zero, random({2, 3}, 2)}));
  };
  check([](const Inputs& in) { return in[0] * in[1] - in[1] / in[0]; });
  check([](const Inputs& in) { return 2 / in[0] - in[1] / 3; });
  check([](const Inputs& in) { return (1 - in[0]) * in[1] + (in[0] + 2) * -in[1] - 1; });
}

TEMPLATE_TEST_CASE("float and a half type give float, with gradients in the type of each", "", bfloat16, float16) {
  using T = TestType;
  Tape tape;
  Tensor<float> of_stream;
  Tensor<T> of_value;
  const auto stream = watch(variable<float>({2}, {1.0001F, -3}).value(), [&](const Tensor<float>& dx) { of_stream = dx; });
  const auto value = watch(variable<T>({2}, {0.5F, 2}).value(), [&](const Tensor<T>& dx) { of_value = dx; });
  const auto y = stream + value;
  STATIC_REQUIRE(std::is_same_v<decltype(y), const Variable<float>>);
  STATIC_REQUIRE(std::is_same_v<decltype(value - stream), Variable<float>>);
  STATIC_REQUIRE(std::is_same_v<decltype(value * stream), Variable<float>>);
  STATIC_REQUIRE(std::is_same_v<decltype(stream / value), Variable<float>>);
  CHECK(values(y) == Floats{1.5001F, -1});
  CHECK(values(value + stream) == values(y));
  CHECK(values(stream / value) == Floats{2.0002F, -1.5F});
  (y * value).backward();
  CHECK(values(Variable<float>(of_stream)) == Floats{0.5F, 2});
  CHECK(values(Variable<T>(of_value)) == values(variable<T>({2}, {0.5F + 1.5001F, 2 - 1})));
}

TEST_CASE("operands whose shapes do not fit, or undefined ones, are one clear error") {
  const auto a = variable<float>({2, 3}, Floats(6, 1));
  const auto b = variable<float>({2}, Floats(2, 1));
  const auto none = Variable<float>();
  CHECK_THROWS_WITH(a + b,
                    "add: the operands have the shapes [2, 3] and [2]: in dim -1 they have 3 and 2 elements, but need equally "
                    "many, or 1");
  CHECK_THROWS_WITH(a - b, ContainsSubstring("subtract: the operands have the shapes [2, 3] and [2]"));
  CHECK_THROWS_WITH(a * b, ContainsSubstring("multiply: the operands have the shapes"));
  CHECK_THROWS_WITH(a / b, ContainsSubstring("divide: the operands have the shapes"));
  CHECK_THROWS_WITH(a + variable<bfloat16>({2}, Floats(2, 1)), ContainsSubstring("add: the operands have the shapes"));
  CHECK_THROWS_WITH(a - none, ContainsSubstring("subtract: operand 2 of 2 is undefined"));
  CHECK_THROWS_WITH(none * Variable<bfloat16>(), ContainsSubstring("multiply: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(none + 1, ContainsSubstring("shift: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(1 / none, ContainsSubstring("divide: operand 1 of 1 is undefined"));
}

TEST_CASE("operators repeat operands, which get the sums of their gradients") {
  const auto a = variable<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto row = variable<float>({3}, {10, 20, 30});
  const auto column = variable<float>({2, 1}, {1, -1});
  CHECK(values(a + row) == Floats{11, 22, 33, 14, 25, 36});
  CHECK(values(column - row) == Floats{-9, -19, -29, -11, -21, -31});
  CHECK((column - row).shape() == Shape{2, 3});
  CHECK(values(a * column.value()) == Floats{1, 2, 3, -4, -5, -6});
  CHECK(values(column.value() / a) == values(column / a));
  const auto check = [&](const Shape& left, const Shape& right) {
    CAPTURE(left.str(), right.str());
    Tensor<double> divisor = random(right, 2);
    for (double& element : divisor.span()) element += element < 0 ? -0.5 : 0.5;
    expect_passed(
        testing::check_gradients([](const Inputs& in) { return (in[0] + in[1]) * in[1] - in[0] / in[1] + (in[1] - in[0]); },
                                 {random(left, 1), divisor}));
  };
  check({2, 3}, {3});
  check({3}, {2, 3});
  check({2, 1}, {3});
  check({}, {2, 2});
  check({2, 3, 1, 2}, {3, 4, 1});
  check({2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2});
}

TEST_CASE("losses and variables are added and subtracted in any order") {
  const auto loss = [](double mean) {
    return Loss<float>{.sum = Variable<float>(Tensor<float>::full({}, static_cast<float>(4 * mean))),
                       .target_weight = 4.0,
                       .nominal_targets = 4};
  };
  const Variable<float> two(Tensor<float>::full({1}, 2));
  CHECK((loss(5) + loss(3)).mean() == 8);
  CHECK((loss(5) - loss(3)).mean() == 2);
  CHECK((loss(5) + two).mean() == 7);
  CHECK((two + loss(5)).mean() == 7);
  CHECK((loss(5) - two).mean() == 3);
  CHECK((two - loss(5)).mean() == -3);
  CHECK((-loss(5)).mean() == -5);
  CHECK((0.5 * (loss(5) - loss(3)) - 2 * two).mean() == -3);
  CHECK((loss(5) - Variable<bfloat16>(Tensor<bfloat16>::full({}, bfloat16(2.F)))).mean() == 3);
}
