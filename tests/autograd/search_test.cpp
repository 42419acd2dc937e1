#include "trireme/autograd/operations/search.hpp"

#include "gradient_check.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

using Gradients = std::vector<double>;

// The gradient of sum(weights * f(x)).
Gradients gradient_of(const std::vector<double>& x, const std::vector<double>& weights,
                      const std::function<Variable<double>(const Variable<double>&)>& f) {
  Tape tape;
  Tensor<double> gradient;
  const auto watched = watch(Tensor<double>::from({std::ssize(x)}, x), [&](const Tensor<double>& dx) { gradient = dx; });
  const Variable<double> y = f(watched);
  y.backward(Tensor<double>::from(y.shape(), weights));
  return elements(gradient);
}

}  // namespace

TEST_CASE("gradients of searches, sorts and cumulative sums over every dim") {
  const auto x = random({2, 3, 4}, 1);
  for (const int dim : {0, 1, -1}) {
    CAPTURE(dim);
    const auto check = [&](const testing::CheckedFunction& function) { expect_passed(check_gradients(function, {x})); };
    check([&](const Inputs& in) { return max_with_index(in[0], dim).values; });
    check([&](const Inputs& in) { return min_with_index(in[0], dim, true).values; });
    check([&](const Inputs& in) { return sort(in[0], dim).values; });
    check([&](const Inputs& in) { return sort(in[0], dim, true).values; });
    check([&](const Inputs& in) { return topk(in[0], 2, dim).values; });
    check([&](const Inputs& in) { return topk(in[0], 1, dim, false).values; });
    check([&](const Inputs& in) { return cumsum(in[0], dim); });
    check([&](const Inputs& in) { return cumprod(in[0], dim); });
    check([&](const Inputs& in) { return multiply(cumsum(in[0], dim), sort(in[0], dim).values); });
  }
  expect_passed(check_gradients([](const Inputs& in) { return cumprod(in[0], 0); }, {random({}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return topk(in[0], 0, 0).values; }, {random({3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return sort(in[0], 0).values; }, {Tensor<double>({0, 2})}));
}

TEST_CASE("a gradient goes to the first of equal elements") {
  CHECK(gradient_of({2, 5, 5}, {1}, [](const auto& x) { return max_with_index(x, 0).values; }) == Gradients{0, 1, 0});
  CHECK(gradient_of({2, 5, 2}, {1}, [](const auto& x) { return min_with_index(x, 0).values; }) == Gradients{1, 0, 0});
  CHECK(gradient_of({2, 5, 5}, {1, 2, 3}, [](const auto& x) { return sort(x, 0, true).values; }) == Gradients{3, 1, 2});
  CHECK(gradient_of({5, 5, 5}, {1, 2}, [](const auto& x) { return topk(x, 2).values; }) == Gradients{1, 2, 0});
}

TEST_CASE("the gradient of a cumulative product is right beside zeros") {
  const auto products = [](const auto& x) { return cumprod(x, 0); };
  CHECK(gradient_of({2, 3, 4}, {1, 1, 1}, products) == Gradients{1 + 3 + 12, 2 + 8, 6});
  CHECK(gradient_of({2, 0, 4}, {1, 1, 1}, products) == Gradients{1, 2 + 8, 0});
  CHECK(gradient_of({0, 0, 4}, {1, 1, 1}, products) == Gradients{1, 0, 0});
}

TEST_CASE("indices of variables") {
  const Variable<double> x = Tensor<double>::from({2, 2}, {1, 3, 4, 2});
  CHECK(argmax(x).item() == 2);
  CHECK(elements(argmin(x, 1)) == std::vector<std::int64_t>{0, 1});
  CHECK(elements(argsort(x, 0, true)) == std::vector<std::int64_t>{1, 0, 0, 1});
  CHECK(elements(topk(x, 1).indices) == std::vector<std::int64_t>{1, 0});
  CHECK_THROWS_WITH(topk(x, 3), ContainsSubstring("topk: k is 3"));
  const Variable<double> none;
  CHECK_THROWS_WITH(argmax(none), ContainsSubstring("argmax: x is undefined"));
  CHECK_THROWS_WITH(max_with_index(none, 0), ContainsSubstring("max_with_index: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(sort(none), ContainsSubstring("sort: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(topk(none, 2), ContainsSubstring("topk: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(cumsum(none, 0), ContainsSubstring("cumsum: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(cumprod(none, 0), ContainsSubstring("cumprod: operand 1 of 1 is undefined"));
}
