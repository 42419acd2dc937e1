#include "trireme/autograd/operations/index.hpp"

#include "gradient_check.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"

// Functions on indices, on variables.
using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

Tensor<std::int64_t> index_of(const Shape& shape, const std::vector<std::int64_t>& values) {
  return Tensor<std::int64_t>::from(shape, values);
}

}  // namespace

TEST_CASE("gradients of functions on indices") {
  const auto x = random({2, 3, 4}, 1);
  const auto each = index_of({2, 2, 4}, {2, 0, 1, 1, 0, 0, 2, 1, 1, 1, 1, 0, 2, 1, 0, 0});
  const auto twice = index_of({2, 2, 4}, {2, 0, 1, 1, 2, 0, 1, 2, 1, 1, 1, 0, 1, 1, 0, 0});
  const auto halves = index_of({2, 2, 4}, {1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0});
  const auto rows = index_of({4}, {2, 0, 2, 2});
  const auto source = random({2, 2, 4}, 2);
  expect_passed(check_gradients([&](const Inputs& in) { return gather(in[0], 1, each); }, {x}));
  expect_passed(check_gradients(
      [&](const Inputs& in) {
        return gather(in[0], 1, index_of({1, 2, 3}, {2, 0, 1, 1, 0, 0}));
      },
      {x}));
  expect_passed(check_gradients(
      [&](const Inputs& in) {
        return add(sum(multiply(in[0], in[0])), sum(multiply(gather(in[0], 1, each), gather(in[0], 1, twice))));
      },
      {x}));
  for (const auto& index : {each, twice}) {
    expect_passed(check_gradients([&](const Inputs& in) { return scatter(in[0], 1, index, in[1]); }, {x, source}));
    expect_passed(check_gradients([&](const Inputs& in) { return scatter_add(in[0], 1, index, in[1]); }, {x, source}));
  }
  expect_passed(check_gradients([&](const Inputs& in) { return scatter_add(in[0], 1, halves, in[0]); }, {source}));
  const auto less = index_of({1, 2, 3}, {2, 0, 1, 1, 0, 1});
  for (const auto& index : {each, less}) {
    for (const auto reduction : {ScatterReduction::amax, ScatterReduction::amin}) {
      expect_passed(
          check_gradients([&](const Inputs& in) { return scatter_reduce(in[0], 1, index, in[1], reduction); }, {x, source}));
    }
  }
  expect_passed(check_gradients([&](const Inputs& in) { return scatter(in[0], 1, less, in[1]); }, {x, source}));
  expect_passed(check_gradients([&](const Inputs& in) { return scatter_add(in[0], 1, less, in[1]); }, {x, source}));
  expect_passed(check_gradients([&](const Inputs& in) { return index_select(in[0], 1, rows); }, {x}));
  expect_passed(check_gradients([&](const Inputs& in) { return index_select(in[0], -1, rows); }, {x}));
  expect_passed(check_gradients([&](const Inputs& in) { return index_add(in[0], 1, rows, in[1]); }, {x, random({2, 4, 4}, 2)}));
}

TEST_CASE("of a Variable and a Tensor the Tensor is a constant") {
  const auto x = random({2, 3}, 1), source = random({4, 3}, 2);
  const auto rows = index_of({4}, {1, 0, 1, 1});
  const auto each = index_of({4, 3}, {1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0});
  expect_passed(check_gradients([&](const Inputs& in) { return index_add(x, 0, rows, in[0]); }, {source}));
  expect_passed(check_gradients([&](const Inputs& in) { return index_add(in[0], 0, rows, source); }, {x}));
  expect_passed(check_gradients([&](const Inputs& in) { return scatter_add(x, 0, each, in[0]); }, {source}));
  expect_passed(check_gradients([&](const Inputs& in) { return scatter_add(in[0], 0, each, source); }, {x}));
  expect_passed(check_gradients([&](const Inputs& in) { return scatter(x, 0, each, in[0]); }, {source}));
  expect_passed(check_gradients([&](const Inputs& in) { return scatter(in[0], 0, each, source); }, {x}));
  const auto largest = [&](const auto& to, const auto& from) {
    return scatter_reduce(to, 0, each, from, ScatterReduction::amax);
  };
  expect_passed(check_gradients([&](const Inputs& in) { return largest(x, in[0]); }, {source}));
  expect_passed(check_gradients([&](const Inputs& in) { return largest(in[0], source); }, {x}));
}

TEST_CASE("equal extremes share the gradient") {
  Tape tape;
  Tensor<double> of_x, of_source;
  const auto x = watch(Tensor<double>::full({2}, 3), [&](Tensor<double> gradient) { of_x = gradient; });
  const auto source =
      watch(Tensor<double>::from({4}, std::vector<double>{3, 3, 1, 5}), [&](Tensor<double> gradient) { of_source = gradient; });
  sum(scatter_reduce(x, 0, index_of({4}, {0, 0, 0, 1}), source, ScatterReduction::amax)).backward();
  CHECK(of_x.to_vector() == std::vector<double>{1. / 3, 0});
  CHECK(of_source.to_vector() == std::vector<double>{1. / 3, 1. / 3, 0, 1});
}

TEST_CASE("functions on indices name what is undefined") {
  const Variable<double> none;
  const Variable<double> x = random({2, 2}, 1);
  const auto index = index_of({2, 2}, {0, 1, 1, 0});
  CHECK_THROWS_WITH(gather(none, 0, index), ContainsSubstring("gather: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(gather(x, 0, Tensor<std::int32_t>()), ContainsSubstring("gather: operand 2 of 2 is undefined"));
  CHECK_THROWS_WITH(scatter(x, 0, index, none), ContainsSubstring("scatter: operand 3 of 3 is undefined"));
  CHECK_THROWS_WITH(scatter_add(none, 0, index, x), ContainsSubstring("scatter_add: operand 1 of 3 is undefined"));
  CHECK_THROWS_WITH(scatter_reduce(x, 0, index, none, ScatterReduction::amin),
                    ContainsSubstring("scatter_reduce: operand 3 of 3 is undefined"));
  CHECK_THROWS_WITH(slice_scatter(x, none, 0, 1), ContainsSubstring("slice_scatter: operand 2 of 2 is undefined"));
  CHECK_THROWS_WITH(index_select(none, 0, index), ContainsSubstring("index_select: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(index_add(none, 0, index, x), ContainsSubstring("index_add: operand 1 of 3 is undefined"));
}
