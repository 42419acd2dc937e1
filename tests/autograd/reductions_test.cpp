#include <cmath>
#include <limits>

#include "gradient_check.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The gradient of f(x), summed.
std::vector<double> gradient_of(const std::vector<double>& x,
                                const std::function<Variable<double>(const Variable<double>&)>& f) {
  Tape tape;
  Tensor<double> gradient;
  const auto watched = watch(Tensor<double>::from({std::ssize(x)}, x), [&](const Tensor<double>& dx) { gradient = dx; });
  sum(f(watched)).backward();
  return elements(gradient);
}

using Gradients = std::vector<double>;

}  // namespace

TEST_CASE("gradients of reductions over every kind of dims") {
  const auto x = random({2, 3, 4, 2}, 1);
  for (const Dims& dims : {Dims(), Dims(0), Dims(-1), Dims(1), Dims{0, 2}, Dims{1, 3}, Dims{1, 2}, Dims{0, 3}}) {
    for (const bool keep_dims : {false, true}) {
      CAPTURE(dims.numbers().size(), keep_dims);
      const auto check = [&](const testing::CheckedFunction& function) { expect_passed(check_gradients(function, {x})); };
      check([&](const Inputs& in) { return sum(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return mean(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return prod(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return max(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return min(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return logsumexp(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return var(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return var(in[0], dims, keep_dims, 0.5); });
      check([&](const Inputs& in) { return stddev(in[0], dims, keep_dims); });
      check([&](const Inputs& in) { return norm(in[0], 1, dims, keep_dims); });
      check([&](const Inputs& in) { return norm(in[0], 2, dims, keep_dims); });
      check([&](const Inputs& in) { return norm(in[0], infinity, dims, keep_dims); });
    }
  }
}

TEST_CASE("elements that are all the largest share the gradient") {
  CHECK(gradient_of({2, 5, 5}, [](const auto& x) { return max(x); }) == Gradients{0, 0.5, 0.5});
  CHECK(gradient_of({2, 5, 2, 2}, [](const auto& x) { return min(x); }) == Gradients{1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  CHECK(gradient_of({3, -4, 4}, [](const auto& x) { return norm(x, infinity); }) == Gradients{0, -0.5, 0.5});
  for (const double gradient : gradient_of({3, std::nan(""), 5}, [](const auto& x) { return max(x); })) {
    CHECK(std::isnan(gradient));  // as in PyTorch
  }
}

TEST_CASE("the gradient of a product is right beside zeros") {
  const auto product = [](const auto& x) { return prod(x); };
  CHECK(gradient_of({2, 3, 4}, product) == Gradients{12, 8, 6});
  CHECK(gradient_of({2, 0, 4}, product) == Gradients{0, 8, 0});
  CHECK(gradient_of({0, 0, 4}, product) == Gradients{0, 0, 0});
  CHECK(gradient_of({1e-200, 1e-200, 2}, product) == Gradients{2e-200, 2e-200, 0});
  CHECK(gradient_of({5}, product) == Gradients{1});
}

TEST_CASE("gradients where a norm or deviation is 0, and of infinite elements") {
  for (const double p : {1.0, 2.0, infinity}) {
    CHECK(gradient_of({0, 0}, [=](const auto& x) { return norm(x, p); }) == Gradients{0, 0});
  }
  CHECK(gradient_of({2, 2}, [](const auto& x) { return stddev(x); }) == Gradients{0, 0});
  CHECK(gradient_of({3}, [](const auto& x) { return var(x, {}, false, 0); }) == Gradients{0});
  CHECK(std::isnan(gradient_of({3}, [](const auto& x) { return var(x); })[0]));
  CHECK(gradient_of({-infinity, 1}, [](const auto& x) { return logsumexp(x); }) == Gradients{0, 1});
  CHECK(gradient_of({-infinity, -infinity}, [](const auto& x) { return logsumexp(x); }) == Gradients{0, 0});
  for (const double gradient : gradient_of({1e4, 1e4}, [](const auto& x) { return logsumexp(x); })) {
    CHECK(gradient == Approx(0.5));
  }
}

TEST_CASE("gradients of reductions of nothing, of a scalar, and of a variable that is used twice") {
  expect_passed(check_gradients([](const Inputs& in) { return sum(in[0], 1); }, {Tensor<double>::zeros({2, 0})}));
  expect_passed(check_gradients([](const Inputs& in) { return norm(in[0], 2, 0); }, {Tensor<double>::zeros({0, 2})}));
  expect_passed(check_gradients([](const Inputs& in) { return max(in[0], -1, true); }, {random({}, 1)}));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        return multiply(sum(in[0], {0, 2}), max(in[0], {0, 2}));
      },
      {random({2, 3, 4}, 1)}));
}

TEST_CASE("the gradient of logsumexp is the softmax beside elements of any size") {
  const std::vector<float> steps{0, 1, 3};
  for (const float offset : {0.0F, 1e6F, -1e7F}) {
    Tape tape;
    Tensor<float> x = Tensor<float>::from({3}, steps), gradient;
    for (float& element : x.span()) element += offset;
    logsumexp(watch(x, [&](const Tensor<float>& dx) { gradient = dx; })).backward();
    CHECK(gradient.at(0) == Approx(0.0420100660));
    CHECK(gradient.at(1) == Approx(0.1141951998));
    CHECK(gradient.at(2) == Approx(0.8437947343));
  }
}

TEST_CASE("reductions of half types compute in double") {
  Tape tape;
  Tensor<float> gradient;
  const auto x = watch(Tensor<float>::full({1000}, 0.1F), [&](const Tensor<float>& dx) { gradient = dx; });
  const auto y = logsumexp(shift(cast<bfloat16>(x), 100.0F));
  y.backward();
  for (const float element : gradient.span()) CHECK(element == Approx(0.001).epsilon(0.01));
}

TEST_CASE("reductions of variables refuse what those of tensors do") {
  const Variable<double> x = random({2, 3}, 1);
  CHECK_THROWS_WITH(sum(x, 2), ContainsSubstring("sum: a tensor of shape [2, 3] has no dim 2"));
  CHECK_THROWS_WITH(max(Variable<double>(Tensor<double>({0}))), ContainsSubstring("no element to choose from"));
  CHECK_THROWS_WITH(norm(x, 0.5), ContainsSubstring("norm: p is 1, 2 or infinity"));
  for (const auto& call : std::vector<std::function<void(const Variable<double>&)>>{
           [](const auto& none) { mean(none); }, [](const auto& none) { prod(none, 0); }, [](const auto& none) { var(none); },
           [](const auto& none) { norm(none); }}) {
    CHECK_THROWS_WITH(call({}), ContainsSubstring("operand 1 of 1 is undefined"));
  }
}
