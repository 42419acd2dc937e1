#include "trireme/ops/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/reduce/reductions.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Formula {
  Activation kind;
  std::function<double(double)> value;
  std::function<double(double)> derivative;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_tanh_derivative(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  const double t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
double normal_distribution(double x) { return 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }

const std::vector<Formula> formulas{
    {Activation::gelu_tanh, gelu_tanh, gelu_tanh_derivative},
    {Activation::gelu_erf, [](double x) { return x * normal_distribution(x); },
     [](double x) { return normal_distribution(x) + x * normal_density(x); }},
    {Activation::relu, [](double x) { return x > 0 ? x : 0; }, [](double x) { return x > 0 ? 1 : 0; }},
    {Activation::silu, [](double x) { return x * sigmoid(x); },
     [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }},
    {Activation::sigmoid, sigmoid, [](double x) { return sigmoid(x) * (1 - sigmoid(x)); }},
    {Activation::tanh, [](double x) { return std::tanh(x); }, [](double x) { return 1 - std::tanh(x) * std::tanh(x); }},
};

template <typename T>
Tensor<T> inputs() {
  Tensor<T> x = random_tensor<T>({37, 11}, 1, 3);
  const double special[] = {0, 1e-6, -1e-6, 0.6249, 0.6251, 12, -12, 60, -60};
  for (std::size_t i = 0; i < std::size(special); ++i) x.span()[i] = static_cast<T>(special[i]);
  return x;
}

}  // namespace

TEMPLATE_TEST_CASE("activations and their gradients follow their formulas", "", float, double) {
  const auto x = inputs<TestType>();
  const auto dy = random_tensor<TestType>(x.shape(), 2);
  for (const Formula& formula : formulas) {
    CAPTURE(static_cast<int>(formula.kind));
    Doubles value;
    Doubles gradient;
    for (std::size_t i = 0; i < x.span().size(); ++i) {
      const auto at = static_cast<double>(x.span()[i]);
      value.push_back(formula.value(at));
      gradient.push_back(static_cast<double>(dy.span()[i]) * formula.derivative(at));
    }
    Tensor<TestType> y(x.shape());
    activation(formula.kind, x, y);
    require_close(y, value, tolerance<TestType>(5e-7));

    Tensor<TestType> dx(x.shape());
    activation_backward(formula.kind, x, dy, dx, false);
    require_close(dx, gradient, tolerance<TestType>(1e-6));
    activation_backward(formula.kind, x, dy, dx, true);
    require_close(dx, add(gradient, gradient), tolerance<TestType>(2e-6));

    Tensor<TestType> in_place = x.clone();
    activation(formula.kind, in_place, in_place);
    require_identical(in_place, y);
  }
}

TEMPLATE_TEST_CASE("gated activations and both their gradients follow their formulas", "", float, double, bfloat16, float16) {
  using T = TestType;
  const double rounding = std::is_same_v<T, bfloat16> ? 1e-2 : std::is_same_v<T, float16> ? 2e-3 : tolerance<T>(2e-6);
  const auto gate = random_tensor<T>({3, 1111}, 1);  // more than one piece
  const auto x = random_tensor<T>(gate.shape(), 2), dy = random_tensor<T>(gate.shape(), 3);
  for (const Formula& formula : formulas) {
    CAPTURE(static_cast<int>(formula.kind));
    Doubles value, of_gate, of_x, of_gate_twice, of_x_twice;
    for (std::size_t i = 0; i < gate.span().size(); ++i) {
      const auto at = static_cast<double>(gate.span()[i]), factor = static_cast<double>(x.span()[i]);
      const auto upstream = static_cast<double>(dy.span()[i]);
      value.push_back(formula.value(at) * factor);
      of_gate.push_back(upstream * factor * formula.derivative(at));
      of_x.push_back(upstream * formula.value(at));
    }
    Tensor<T> y(gate.shape()), dgate(gate.shape()), dx(gate.shape()), none;
    gated_activation(formula.kind, gate, x, y);
    require_close(y, value, rounding);
    gated_activation_backward(formula.kind, gate, x, dy, dgate, false, dx, false);
    require_close(dgate, of_gate, rounding);
    require_close(dx, of_x, rounding);
    const Tensor<T> gate_once = dgate.clone();
    gated_activation_backward(formula.kind, gate, x, dy, none, false, dx, true);
    require_close(dx, add(of_x, of_x), 2 * rounding);
    gated_activation_backward(formula.kind, gate, x, dy, dgate, true, none, false);
    require_close(dgate, add(of_gate, of_gate), 2 * rounding);
    gated_activation_backward(formula.kind, gate, x, dy, none, false, none, false);
  }
}

TEMPLATE_TEST_CASE("leaky relu and softplus follow their formulas", "", float, double) {
  const auto x = inputs<TestType>();
  const auto dy = random_tensor<TestType>(x.shape(), 2);
  Doubles leaky, leaky_gradient, soft, soft_gradient;
  for (std::size_t i = 0; i < x.span().size(); ++i) {
    const auto at = static_cast<double>(x.span()[i]);
    const auto upstream = static_cast<double>(dy.span()[i]);
    leaky.push_back(at > 0 ? at : 0.1 * at);
    leaky_gradient.push_back(upstream * (at > 0 ? 1 : 0.1));
    soft.push_back(2 * at > 15 ? at : std::log1p(std::exp(2 * at)) / 2);
    soft_gradient.push_back(upstream * (2 * at > 15 ? 1 : sigmoid(2 * at)));
  }
  Tensor<TestType> y(x.shape());
  Tensor<TestType> dx(x.shape());
  leaky_relu(x, 0.1, y);
  require_close(y, leaky, tolerance<TestType>(5e-7));
  leaky_relu_backward(x, 0.1, dy, dx, false);
  leaky_relu_backward(x, 0.1, dy, dx, true);
  require_close(dx, add(leaky_gradient, leaky_gradient), tolerance<TestType>(1e-6));
  softplus(x, {.beta = 2, .threshold = 15}, y);
  require_close(y, soft, tolerance<TestType>(5e-7));
  softplus_backward(x, {.beta = 2, .threshold = 15}, dy, dx, false);
  softplus_backward(x, {.beta = 2, .threshold = 15}, dy, dx, true);
  require_close(dx, add(soft_gradient, soft_gradient), tolerance<TestType>(2e-6));
  CHECK_THROWS_WITH(softplus(x, {.beta = 0}, y), "softplus: beta is 0, but must be above 0");
}

TEMPLATE_TEST_CASE("add, multiply and scale", "", float, double) {
  const auto a = random_tensor<TestType>({5, 33}, 1);
  const auto b = random_tensor<TestType>({5, 33}, 2);
  const auto old = random_tensor<TestType>({5, 33}, 3);
  Doubles sum;
  Doubles product;
  Doubles scaled;
  for (std::size_t i = 0; i < a.span().size(); ++i) {
    sum.push_back(static_cast<double>(a.span()[i]) + static_cast<double>(b.span()[i]));
    product.push_back(static_cast<double>(a.span()[i]) * static_cast<double>(b.span()[i]));
    scaled.push_back(-2.5 * static_cast<double>(a.span()[i]));
  }
  Tensor<TestType> c(a.shape());
  ops::add(a, b, c);
  require_close(c, sum, tolerance<TestType>(1e-6));
  multiply(a, b, c);
  require_close(c, product, tolerance<TestType>(1e-6));
  scale(a, TestType(-2.5), c);
  require_close(c, scaled, tolerance<TestType>(1e-6));

  c = old.clone();
  multiply(a, b, c, true);
  require_close(c, add(as_doubles(old), product), tolerance<TestType>(1e-6));
  c = old.clone();
  scale(a, TestType(-2.5), c, true);
  require_close(c, add(as_doubles(old), scaled), tolerance<TestType>(1e-6));
}

TEMPLATE_TEST_CASE("subtract, divide and shift", "", float, double, bfloat16, float16) {
  using T = TestType;
  const Shape shape{5, 433};  // more than a piece of half types
  const auto a = random_tensor<T>(shape, 1);
  auto b = random_tensor<T>(shape, 2);
  for (T& element : b.span()) {  // away from 0
    if (std::abs(static_cast<float>(element)) < 0.25F) element = T(-0.5F);
  }
  const auto dy = random_tensor<T>(shape, 3);
  Doubles difference, quotient, of_dividend, of_divisor, shifted;
  for (std::size_t i = 0; i < a.span().size(); ++i) {
    const auto x = static_cast<double>(a.span()[i]);
    const auto y = static_cast<double>(b.span()[i]);
    const auto upstream = static_cast<double>(dy.span()[i]);
    difference.push_back(x - y);
    quotient.push_back(x / y);
    of_dividend.push_back(upstream / y);
    of_divisor.push_back(-upstream * x / (y * y));
    shifted.push_back(x + 1.5);
  }
  const double rounding = std::is_same_v<T, double>    ? 1e-13
                          : std::is_same_v<T, float>   ? 2e-6
                          : std::is_same_v<T, float16> ? 1e-3
                                                       : 8e-3;
  const auto require_near = [&](const Tensor<T>& had, const Doubles& wanted, double terms = 1) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      REQUIRE(std::abs(static_cast<double>(had.span()[i]) - wanted[i]) <= terms * rounding * (1 + std::abs(wanted[i])));
    }
  };
  Tensor<T> c(shape);
  subtract(a, b, c);
  require_near(c, difference);
  divide(a, b, c);
  require_near(c, quotient);
  divide(dy, b, c, true);
  require_near(c, add(quotient, of_dividend), 4);
  divide_backward_divisor(a, b, dy, c, false);
  require_near(c, of_divisor);
  divide_backward_divisor(a, b, dy, c, true);
  require_near(c, add(of_divisor, of_divisor), 4);
  shift(a, Accumulate<T>(1.5), c);
  require_near(c, shifted);
  Tensor<T> in_place = a.clone();
  subtract(in_place, in_place, in_place);
  for (const T element : in_place.span()) REQUIRE(static_cast<float>(element) == 0);
  const Tensor<T> narrow({5, 432});
  CHECK_THROWS_WITH(subtract(a, narrow, c), "subtract: b has shape [5, 432], but needs [5, 433]");
  CHECK_THROWS_WITH(divide(a, narrow, c), "divide: b has shape [5, 432], but needs [5, 433]");
  CHECK_THROWS_WITH(divide_backward_divisor(a, b, narrow, c, false),
                    "divide_backward_divisor: dy has shape [5, 432], but needs [5, 433]");
  CHECK_THROWS_WITH(shift(Tensor<T>(), Accumulate<T>(1), c), "shift: a is undefined");
}

TEST_CASE("elementwise operations refuse tensors of different shapes") {
  const Tensor<float> a({2, 3});
  Tensor<float> c({3, 2});
  CHECK_THROWS_WITH(ops::add(a, a, c), "add: c has shape [3, 2], but needs [2, 3]");
  CHECK_THROWS_WITH(activation(Activation::relu, a, c), "activation: y has shape [3, 2], but needs [2, 3]");
}

TEST_CASE("what a thread of a parallel loop throws, the loop throws when all that has begun is done") {
  with_threads(3, [] {
    for (const std::int64_t failing : {std::int64_t{0}, std::int64_t{2}}) {
      std::vector<int> begun(3, 0), done(3, 0);
      const auto body = [&](std::int64_t begin, std::int64_t) {
        begun[static_cast<std::size_t>(begin)] = 1;
        require(begin != failing, "thread {} has no memory", begin);
        done[static_cast<std::size_t>(begin)] = 1;
      };
      CHECK_THROWS_WITH(parallel_ranges(3, 1, 1, body), fmt::format("thread {} has no memory", failing));
      for (std::size_t thread = 0; thread < 3; ++thread) {
        const bool fails = std::cmp_equal(thread, failing);
        CHECK(done[thread] == (fails ? 0 : begun[thread]));
        if (fails) CHECK(begun[thread] == 1);
      }
    }
    CHECK_THROWS_AS(parallel_ranges(3, 1, 1, [](std::int64_t, std::int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
  });
}

TEST_CASE("operations refuse tensors that are undefined, by name") {
  const Tensor<double> one = Tensor<double>::full({}, 1);
  const Tensor<double> m = Tensor<double>::full({3, 3}, 1);
  const Tensor<double> none;
  Tensor<double> to = one.clone();
  Tensor<double> to_m = m.clone();
  Tensor<double> nowhere;
  Tensor<float> nowhere_float;
  const RandomKey key{};
  const std::vector<std::pair<std::string, std::function<void()>>> refused{
      {"activation: x", [&] { activation(Activation::relu, none, to); }},
      {"activation: x", [&] { activation(Activation::relu, none, nowhere); }},
      {"activation: y", [&] { activation(Activation::relu, one, nowhere); }},
      {"gated_activation: gate", [&] { gated_activation(Activation::relu, none, one, to); }},
      {"gated_activation: x", [&] { gated_activation(Activation::relu, one, none, to); }},
      {"gated_activation_backward: dy",
       [&] { gated_activation_backward(Activation::relu, one, one, none, to, false, to, false); }},
      {"activation_backward: x", [&] { activation_backward(Activation::relu, none, one, to, false); }},
      {"activation_backward: dy", [&] { activation_backward(Activation::relu, one, none, to, false); }},
      {"activation_backward: dx", [&] { activation_backward(Activation::relu, one, one, nowhere, false); }},
      {"add: a", [&] { add(none, one, to); }},
      {"add: b", [&] { add(one, none, to); }},
      {"add: c", [&] { add(one, one, nowhere); }},
      {"multiply: a", [&] { multiply(none, one, to); }},
      {"multiply: b", [&] { multiply(one, none, to); }},
      {"scale: a", [&] { scale(none, 2.0, to); }},
      {"scale: c", [&] { scale(one, 2.0, nowhere); }},
      {"leaky_relu: x", [&] { leaky_relu(none, 0.1, to); }},
      {"leaky_relu_backward: x", [&] { leaky_relu_backward(none, 0.1, one, to, false); }},
      {"softplus: x", [&] { softplus(none, {}, to); }},
      {"softplus_backward: x", [&] { softplus_backward(none, {}, one, to, false); }},
      {"dropout: x", [&] { dropout(none, 0.1, key, to); }},
      {"dropout: y", [&] { dropout(one, 0.1, key, nowhere); }},
      {"cast: x", [&] { cast(Tensor<bfloat16>(), nowhere_float); }},
      {"cast: y", [&] { cast(Tensor<bfloat16>::full({}, bfloat16(1)), nowhere_float); }},
      {"sum: x", [&] { sum(none); }},
      {"sum_rows: x", [&] { sum_rows(none, to, false); }},
      {"sum_rows: columns", [&] { sum_rows(m, nowhere, false); }},
      {"matmul: a", [&] { matmul(none, m, to_m); }},
      {"matmul: b", [&] { matmul(m, none, to_m); }},
      {"matmul: c", [&] { matmul(m, m, nowhere); }},
      {"linear: x", [&] { linear(none, m, {}, to_m); }},
      {"linear: weight", [&] { linear(m, none, {}, to_m); }},
      {"linear: y", [&] { linear(m, m, {}, nowhere); }},
      {"batched_matmul: a", [&] { batched_matmul(none, m, to_m); }},
      {"batched_matmul: c", [&] { batched_matmul(m, m, nowhere); }}};
  for (const auto& [message, call] : refused) {
    CAPTURE(message);
    CHECK_THROWS_WITH(call(), ContainsSubstring(message + " is undefined"));
  }
}

TEST_CASE("casts of whole numbers, of bool and of double") {
  const auto counts = Tensor<std::int64_t>::from({3}, {-2, 0, (std::int64_t{1} << 32) + 5});
  CHECK(cast<float>(counts).to_vector() == std::vector<float>{-2, 0, 4294967296});
  CHECK(cast<double>(counts).to_vector() == std::vector<double>{-2, 0, 4294967301});
  CHECK(cast<std::int32_t>(counts).to_vector() == std::vector<std::int32_t>{-2, 0, 5});  // wraps around
  const auto narrow = Tensor<std::int32_t>::from({2}, {-7, 16777217});
  CHECK(cast<std::int64_t>(narrow).to_vector() == std::vector<std::int64_t>{-7, 16777217});
  CHECK(cast<float>(narrow).to_vector() == std::vector<float>{-7, 16777216});  // to the nearest
  Tensor<bool> mask = Tensor<bool>::full({2, 1}, true);
  mask.at(0, 0) = false;
  CHECK(cast<float>(mask).to_vector() == std::vector<float>{0, 1});
  CHECK(cast<std::int64_t>(mask).shape() == Shape{2, 1});
  CHECK(cast<float>(Tensor<double>::from({1}, {0.1})).item() == 0.1F);
  CHECK(cast<double>(Tensor<float>::from({1}, {0.1F})).item() == static_cast<double>(0.1F));
  CHECK(cast<float>(Tensor<std::int32_t>({0, 3})).shape() == Shape{0, 3});
  CHECK(cast<std::int32_t>(narrow).data() == narrow.data());
  CHECK_THROWS_WITH(cast<float>(Tensor<std::int64_t>()), "cast: x is undefined");
  Tensor<float> sums = Tensor<float>::full({2}, 1);
  ops::cast(narrow, sums, true);
  CHECK(sums.at(0) == -6);
  Tensor<std::int32_t> wrapped = Tensor<std::int32_t>::full({1}, 2147483647);
  ops::cast(Tensor<std::int64_t>::full({1}, 1), wrapped, true);
  CHECK(wrapped.item() == -2147483648);
}
