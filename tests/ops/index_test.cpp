#include "trireme/ops/index/index.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Functions on indices, against values of torch 2.15.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
Tensor<T> numbers(const Shape& shape, double first = 0) {
  return arange<T>(first, first + static_cast<double>(shape.numel())).reshape(shape);
}

template <typename I>
Tensor<I> index_of(const Shape& shape, const std::vector<I>& values) {
  return Tensor<I>::from(shape, values);
}

template <typename T>
void expect(const char* what, const Tensor<T>& got, const Shape& shape, const std::vector<int>& values) {
  CAPTURE(what);
  CHECK(got.shape().str() == shape.str());
  std::vector<int> found;
  for (const T element : got.span()) found.push_back(static_cast<int>(static_cast<Accumulate<T>>(element)));
  CHECK(found == values);
}

}  // namespace

TEMPLATE_TEST_CASE("elements by their index", "", float, double, float16, std::int32_t, std::int64_t) {
  using T = TestType;
  const auto x = numbers<T>({2, 3, 4});
  const auto index = index_of<std::int32_t>({2, 2, 4}, {2, 0, 1, 1, 0, 0, 2, 1, 1, 1, 1, 0, 2, 1, 0, 0});
  const auto source = numbers<T>({2, 2, 4}, 100);
  expect("gather", gather(x, 1, index), {2, 2, 4}, {8, 1, 6, 7, 0, 1, 10, 7, 16, 17, 18, 15, 20, 17, 14, 15});
  expect("gather of less", gather(x, 1, index_of<std::int64_t>({1, 3, 2}, {2, 0, 0, 1, 1, 1})), {1, 3, 2}, {8, 1, 0, 5, 4, 5});
  expect("gather along the last dim", gather(x, -1, index_of<std::int64_t>({2, 3, 1}, {3, 0, 1, 2, 2, 0})), {2, 3, 1},
         {3, 4, 9, 14, 18, 20});
  expect("scatter", scatter(x, 1, index, source), {2, 3, 4},
         {104, 105, 2, 3, 4, 5, 102, 107, 100, 9, 106, 11, 12, 13, 114, 115, 108, 113, 110, 19, 112, 21, 22, 23});
  expect("scatter_add", scatter_add(x, -2, index, source), {2, 3, 4},
         {104, 207, 2, 3, 4, 5, 108, 217, 108, 9, 116, 11, 12, 13, 128, 241, 124, 239, 128, 19, 132, 21, 22, 23});
  const auto less = index_of<std::int64_t>({1, 2, 2}, {2, 0, 1, 1});
  expect("scatter of less", scatter(x, 1, less, source), {2, 3, 4},
         {0, 101, 2, 3, 104, 105, 6, 7, 100, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  expect("scatter_add of less", scatter_add(x, 1, less, source), {2, 3, 4},
         {0, 102, 2, 3, 108, 110, 6, 7, 108, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  const auto rows = index_of<std::int64_t>({3}, {2, 0, 2});
  expect("index_select", index_select(x, 1, rows), {2, 3, 4},
         {8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23, 12, 13, 14, 15, 20, 21, 22, 23});
  expect("index_select of the last dim", index_select(x, -1, index_of<std::int32_t>({2}, {3, 1})), {2, 3, 2},
         {3, 1, 7, 5, 11, 9, 15, 13, 19, 17, 23, 21});
  expect("index_add", index_add(x, 1, rows, numbers<T>({2, 3, 4}, 100)), {2, 3, 4},
         {104, 106, 108, 110, 4, 5, 6, 7, 216, 219, 222, 225, 128, 130, 132, 134, 16, 17, 18, 19, 252, 255, 258, 261});
  expect("one_hot", one_hot<T>(index_of<std::int32_t>({2, 2}, {1, 0, 2, 2}), 3), {2, 2, 3},
         {0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1});
}

TEMPLATE_TEST_CASE("extremes by index", "", float, double, bfloat16, std::int32_t, std::int64_t) {
  using T = TestType;
  const auto x = numbers<T>({2, 3, 4});
  const auto index = index_of<std::int32_t>({2, 2, 4}, {2, 0, 1, 1, 0, 0, 2, 1, 1, 1, 1, 0, 2, 1, 0, 0});
  std::vector<T> values;
  for (const int value : {0, 3, 6, 9, 12, 15, 1, 4, 7, 10, 13, 16, 2, 5, 8, 11})
    values.push_back(static_cast<T>(Accumulate<T>(value)));
  const auto source = Tensor<T>::from({2, 2, 4}, values);
  expect("amax", scatter_reduce(x, 1, index, source, ScatterReduction::amax), {2, 3, 4},
         {12, 15, 2, 3, 4, 5, 6, 9, 8, 9, 10, 11, 12, 13, 14, 16, 16, 17, 18, 19, 20, 21, 22, 23});
  expect("amin", scatter_reduce(x, -2, index, source, ScatterReduction::amin), {2, 3, 4},
         {0, 1, 2, 3, 4, 5, 6, 4, 0, 9, 1, 11, 12, 13, 8, 11, 7, 5, 13, 19, 2, 21, 22, 23});
  expect("x itself", x, {2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
}

TEST_CASE("an extreme of NaN is NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto x = Tensor<float>::from({4}, {1, nan, -infinity, infinity});
  const auto index = index_of<std::int64_t>({7}, {0, 0, 1, 2, 2, 2, 3});
  const auto source = Tensor<float>::from({7}, {5, nan, 7, 1, 3, 2, -infinity});
  const auto largest = scatter_reduce(x, 0, index, source, ScatterReduction::amax);
  CHECK((std::isnan(largest.at(0)) && std::isnan(largest.at(1)) && largest.at(2) == 3 && largest.at(3) == infinity));
  const auto smallest = scatter_reduce(x, 0, index, source, ScatterReduction::amin);
  CHECK(
      (std::isnan(smallest.at(0)) && std::isnan(smallest.at(1)) && smallest.at(2) == -infinity && smallest.at(3) == -infinity));
}

TEST_CASE("sums by index are the same bits with any number of threads") {
  const auto source = random_tensor<float>({3, 700, 50}, 1);
  Tensor<std::int64_t> rows({700}), each({3, 700, 50});
  std::mt19937 generator(3);
  for (auto& row : rows.span()) row = static_cast<std::int64_t>(generator() % 200);
  for (auto& row : each.span()) row = static_cast<std::int64_t>(generator() % 200);
  const auto x = random_tensor<float>({3, 200, 50}, 2);
  const auto expected = index_add(x, 1, rows, source);
  const auto expected_each = scatter_add(x, 1, each, source);
  for (const int threads : {2, 5}) {
    with_threads(threads, [&] {
      require_identical(index_add(x, 1, rows, source), expected);
      require_identical(scatter_add(x, 1, each, source), expected_each);
      require_identical(scatter(x, 1, each, source), scatter(x, 1, each, source));
    });
  }
  auto sums = as_doubles(x);
  for (std::int64_t o = 0; o < 3; ++o) {
    for (std::int64_t p = 0; p < 700; ++p) {
      for (std::int64_t i = 0; i < 50; ++i) {
        sums[static_cast<std::size_t>((o * 200 + rows.data()[p]) * 50 + i)] += static_cast<double>(source.at(o, p, i));
      }
    }
  }
  require_close(expected, sums, 1e-5);
}

TEST_CASE("sums of half types by index are rounded once") {
  const auto ones = Tensor<bfloat16>::full({1000}, bfloat16(1.0f));
  const auto sums = index_add(Tensor<bfloat16>::zeros({2}), 0, Tensor<std::int32_t>::full({1000}, 1), ones);
  CHECK(static_cast<float>(sums.data()[1]) == 1000);
}

TEST_CASE("empty indices and tables") {
  const auto x = numbers<float>({2, 3});
  CHECK(gather(x, 1, Tensor<std::int64_t>({2, 0})).shape() == Shape{2, 0});
  CHECK(index_select(x, 0, Tensor<std::int64_t>({0})).shape() == Shape{0, 3});
  expect("scatter", scatter(x, 1, Tensor<std::int64_t>({2, 0}), Tensor<float>({2, 0})), {2, 3}, {0, 1, 2, 3, 4, 5});
  expect("scatter_reduce", scatter_reduce(x, 0, Tensor<std::int64_t>({0, 3}), Tensor<float>({0, 3}), ScatterReduction::amax),
         {2, 3}, {0, 1, 2, 3, 4, 5});
  expect("index_add", index_add(x, 0, Tensor<std::int64_t>({0}), Tensor<float>({0, 3})), {2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(index_add(Tensor<float>({0, 3}), 0, Tensor<std::int64_t>({0}), Tensor<float>({0, 3})).shape() == Shape{0, 3});
  CHECK(index_select(Tensor<float>({3, 0}), 0, index_of<std::int64_t>({2}, {2, 2})).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(index_select(Tensor<float>({0, 3}), 0, index_of<std::int64_t>({1}, {0})),
                    "index_select: index [0] is 0, but must lie in [0, 0)");
  CHECK(one_hot(Tensor<std::int32_t>({0}), 4).shape() == Shape{0, 4});
  expect("one_hot of a scalar", one_hot(Tensor<std::int32_t>::full({}, 1), 3), {3}, {0, 1, 0});
}

TEST_CASE("an index that is wrong says where") {
  const auto x = numbers<float>({2, 3});
  const auto index = index_of<std::int64_t>({2, 2}, {0, 1, 2, 3});
  CHECK_THROWS_WITH(gather(x, 1, index), "gather: index [1, 1] is 3, but must lie in [0, 3)");
  CHECK_THROWS_WITH(scatter(x, 1, index, Tensor<float>({2, 2})), "scatter: index [1, 1] is 3, but must lie in [0, 3)");
  CHECK_THROWS_WITH(scatter_add(x, 1, index, Tensor<float>({2, 2})), "scatter_add: index [1, 1] is 3, but must lie in [0, 3)");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, index, Tensor<float>({2, 2}), ScatterReduction::amax),
                    "scatter_reduce: index [1, 1] is 3, but must lie in [0, 3)");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, index, Tensor<float>({2, 1}), ScatterReduction::amin),
                    "scatter_reduce: index [2, 2] is larger than source [2, 1] along dim 1");
  CHECK_THROWS_WITH(scatter_reduce(Tensor<float>(), 1, index, x, ScatterReduction::amin), "scatter_reduce: x is undefined");
  const auto negative = index_of<std::int32_t>({2}, {0, -1});
  CHECK_THROWS_WITH(index_select(x, 0, negative), "index_select: index [1] is -1, but must lie in [0, 2)");
  CHECK_THROWS_WITH(index_add(x, 0, negative, x), "index_add: index [1] is -1, but must lie in [0, 2)");
  CHECK_THROWS_WITH(one_hot(negative, 3), "one_hot: index [1] is -1, but must lie in [0, 3)");
  CHECK_THROWS_WITH(one_hot(negative, 0), "one_hot: 0 classes");
  CHECK_THROWS_WITH(gather(x, 1, negative), "gather: index [2] needs as many dims as x [2, 3]");
  CHECK_THROWS_WITH(gather(x, 1, Tensor<std::int64_t>({3, 1})), "gather: index [3, 1] is larger than x [2, 3] along dim 0");
  CHECK_THROWS_WITH(gather(x, 2, index), "gather: x [2, 3] has no dim 2");
  CHECK_THROWS_WITH(scatter(x, 1, Tensor<std::int64_t>({3, 1}), Tensor<float>({3, 1})),
                    "scatter: index [3, 1] is larger than x [2, 3] along dim 0");
  CHECK_THROWS_WITH(scatter(x, 1, index, Tensor<float>({2})), "scatter: index [2, 2] needs as many dims as source [2]");
  CHECK_THROWS_WITH(scatter(x, 1, index, Tensor<float>()), "scatter: source is undefined");
  CHECK_THROWS_WITH(index_select(x, 0, index), "index_select: index [2, 2] must have one dim");
  CHECK_THROWS_WITH(index_add(x, 0, negative, numbers<float>({2, 2})), "index_add: source [2, 2] needs the shape [2, 3]");
  CHECK_THROWS_WITH(gather(x, 1, Tensor<std::int64_t>()), "gather: index is undefined");
  CHECK_THROWS_WITH(gather(Tensor<float>(), 1, index), "gather: x is undefined");
}
