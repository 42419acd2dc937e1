#include "trireme/ops/search/search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/search/cumulative.hpp"
#include "trireme/ops/search/sort.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// ((i * 7) % 11 - 5) / 2, exact in every type; twice that of integers.
template <typename T>
Tensor<T> pattern(const Shape& shape) {
  Tensor<T> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto element = static_cast<float>(i * 7 % 11 - 5);
    x.data()[i] = static_cast<T>(std::is_integral_v<T> ? element : element / 2);
  }
  return x;
}

template <typename T>
Doubles halved(const Tensor<T>& x) {  // back to the values of floats
  Doubles values = as_doubles(x);
  for (double& value : values) value /= std::is_integral_v<T> ? 2 : 1;
  return values;
}

template <typename T>
void check(const Tensor<T>& got, const Shape& shape, const Doubles& expected) {
  CHECK(got.shape() == shape);
  CHECK(halved(got) == expected);
}
void check_places(const Tensor<std::int64_t>& got, const Shape& shape, const Doubles& expected) {
  CHECK(got.shape() == shape);
  CHECK(as_doubles(got) == expected);
}

const auto with_nan = [](auto type) {
  using T = decltype(type);
  Tensor<T> x({8});
  const float values[] = {1, not_a_number, 3, 3, not_a_number, -0.0F, 0, -infinity};
  std::transform(values, values + 8, x.data(), [](float value) { return static_cast<T>(value); });
  return x;
};

}  // namespace

TEMPLATE_TEST_CASE("places of extreme elements are PyTorch's", "", float, double, bfloat16, float16, std::int32_t,
                   std::int64_t) {
  const auto x = pattern<TestType>({2, 3, 4});
  check_places(argmax(x), {}, {3});
  check_places(argmin(x, 1), {2, 4}, {0, 1, 0, 2, 1, 0, 2, 1});
  check_places(argmax(x, -1, true), {2, 3, 1}, {3, 2, 1, 2, 1, 0});
  check_places(argmax(x, 0), {3, 4}, {1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1});
  check_places(argmax(x, {}, true), {1, 1, 1}, {3});
  const auto [values, indices] = max_with_index(x, -1);
  check(values, {2, 3}, {2.5, 2, 1.5, 2.5, 2, 1.5});
  check_places(indices, {2, 3}, {3, 2, 1, 2, 1, 0});
  const auto lowest = min_with_index(x, 1, true);
  check(lowest.values, {2, 1, 4}, {-2.5, -1.5, -1, -2.5, -1.5, -1, -2.5, -2});
  check_places(lowest.indices, {2, 1, 4}, {0, 1, 0, 2, 1, 0, 2, 1});
}

TEMPLATE_TEST_CASE("sorted elements are PyTorch's", "", float, double, bfloat16, float16, std::int32_t, std::int64_t) {
  const auto x = pattern<TestType>({2, 3, 4});
  const auto columns = sort(x, 1);
  check(columns.values, {2, 3, 4},
        {-2.5, -1.5, -1, -2.5, -2, 1, -0.5, 0, 0.5, 1.5, 2, 2.5, -1.5, -1, -2.5, -2, 1, -0.5, 0, 0.5, 1.5, 2, 2.5, 1});
  check_places(columns.indices, {2, 3, 4}, {0, 1, 0, 2, 2, 0, 2, 1, 1, 2, 1, 0, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2});
  const auto rows = sort(x, -1, true);
  check(rows.values, {2, 3, 4},
        {2.5, 1, -1, -2.5, 2, 0.5, 0, -1.5, 1.5, -0.5, -2, -2.5, 2.5, 1, 0.5, -1, 2, 0, -1.5, -2, 1.5, 1, -0.5, -2.5});
  check_places(rows.indices, {2, 3, 4}, {3, 1, 2, 0, 2, 0, 3, 1, 1, 2, 0, 3, 2, 0, 3, 1, 1, 2, 0, 3, 0, 3, 1, 2});
  check_places(argsort(x, -1, true), {2, 3, 4}, as_doubles(rows.indices));
  const auto lowest = topk(x, 2, 1, false);
  check(lowest.values, {2, 2, 4}, {-2.5, -1.5, -1, -2.5, -2, 1, -0.5, 0, -1.5, -1, -2.5, -2, 1, -0.5, 0, 0.5});
  check_places(lowest.indices, {2, 2, 4}, {0, 1, 0, 2, 2, 0, 2, 1, 1, 0, 2, 1, 0, 2, 1, 0});
  const auto largest = topk(x, 1);
  check(largest.values, {2, 3, 1}, {2.5, 2, 1.5, 2.5, 2, 1.5});
  check_places(largest.indices, {2, 3, 1}, {3, 2, 1, 2, 1, 0});
}

TEMPLATE_TEST_CASE("NaN is the largest, zeros are equal, and the first of equal elements counts", "", float, double, bfloat16,
                   float16) {
  const auto x = with_nan(TestType());
  check_places(argmax(x), {}, {1});
  check_places(argmin(x), {}, {1});
  check_places(argsort(x), {8}, {7, 5, 6, 0, 2, 3, 1, 4});
  check_places(argsort(x, 0, true), {8}, {1, 4, 2, 3, 0, 5, 6, 7});
  check_places(topk(x, 3).indices, {3}, {1, 4, 2});
  check_places(topk(x, 3, 0, false).indices, {3}, {7, 5, 6});
  CHECK(std::isnan(static_cast<double>(max_with_index(x, 0).values.item())));
  check_places(argmax(x.reshape({1, 8, 1}), 1), {1, 1}, {1});
  const auto columns = pattern<TestType>({4, 2});
  check_places(argmax(Tensor<TestType>::full({4, 2}, TestType(2.0F)), 0), {2}, {0, 0});
  CHECK(argmax(columns, 0).numel() == 2);
}

TEST_CASE("integers at their ends") {
  using Limits = std::numeric_limits<std::int64_t>;
  const auto x = Tensor<std::int64_t>::from({5}, {0, Limits::min(), Limits::max(), Limits::max() - 1, Limits::min()});
  check_places(argsort(x), {5}, {1, 4, 0, 3, 2});
  check_places(argsort(x, -1, true), {5}, {2, 3, 0, 1, 4});
  CHECK(argmax(x).item() == 2);
  CHECK(argmin(x).item() == 1);
}

TEMPLATE_TEST_CASE("sorts and extremes of many sizes", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const auto& [shape, dim] : std::vector<std::pair<Shape, int>>{
           {{1}, 0}, {{5000}, 0}, {{3, 700}, 1}, {{300, 5}, 0}, {{4, 50, 60}, 1}, {{2, 3, 4, 5, 2, 3}, -3}}) {
    CAPTURE(shape.str(), dim);
    const auto x = random_tensor<T>(shape, 1);
    const std::int64_t extent = shape[dim];
    std::int64_t inner = 1;
    for (int d = (dim < 0 ? dim + shape.size() : dim) + 1; d < shape.size(); ++d) inner *= shape[d];
    const auto sorted = sort(x, dim), reversed = sort(x, dim, true);
    const std::int64_t k = (extent + 2) / 3;
    const auto largest = topk(x, k, dim), smallest = topk(x, k, dim, false);
    const auto at_largest = argmax(x, dim), at_smallest = argmin(x, dim);
    for (std::int64_t row = 0; row < x.numel() / extent; ++row) {
      const std::int64_t o = row / inner, j = row % inner;
      const auto element = [&](std::int64_t place) { return static_cast<double>(x.data()[(o * extent + place) * inner + j]); };
      std::vector<std::int64_t> places(static_cast<std::size_t>(extent));
      std::iota(places.begin(), places.end(), 0);
      const auto compare = [&](const Indexed<Tensor<T>, Cpu>& got, std::int64_t taken) {
        for (std::int64_t t = 0; t < taken; ++t) {
          const std::int64_t at = (o * taken + t) * inner + j;
          if (got.indices.data()[at] != places[static_cast<std::size_t>(t)] ||
              static_cast<double>(got.values.data()[at]) != element(places[static_cast<std::size_t>(t)])) {
            FAIL("element " << t << " of row " << row);
          }
        }
      };
      std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return element(a) < element(b); });
      compare(sorted, extent);
      compare(smallest, k);
      CHECK(at_smallest.data()[row] == places[0]);
      std::iota(places.begin(), places.end(), 0);
      std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return element(a) > element(b); });
      compare(reversed, extent);
      compare(largest, k);
      CHECK(at_largest.data()[row] == places[0]);
    }
  }
}

TEMPLATE_TEST_CASE("cumulative sums and products are PyTorch's", "", float, double, bfloat16, float16) {
  const auto x = pattern<TestType>({2, 3, 4});
  check(cumsum(x, 1), {2, 3, 4},
        {-2.5, 1, -1, 2.5, -2, -0.5, 1, 2.5, -4, 1, 0.5, 0, 1, -1, 2.5, 0.5, -0.5, 1, 2.5, -1.5, 1, 0.5, 0, -0.5});
  check(cumsum(x, 0), {2, 3, 4},
        {-2.5, 1, -1, 2.5, 0.5, -1.5, 2, 0, -2, 1.5, -0.5, -2.5, -1.5, 0, 1.5, 3, -1, 0.5, 2, -2, -0.5, 1, -3, -1.5});
  check(cumprod(x, -1), {2, 3, 4}, {-2.5, -2.5, 2.5,  6.25,  0.5,  -0.75, -1.5, 0, -2,  -3,    1.5,   -3.75,
                                    1,    -1,   -2.5, -1.25, -1.5, -3,    0,    0, 1.5, -0.75, 1.875, 1.875});
}

TEST_CASE("cumulative sums of integers, of many elements, and of NaN") {
  const auto whole = Tensor<std::int32_t>::from({3}, {2147483647, 2147483647, -5});
  CHECK(as_doubles(cumsum(whole, 0)) == Doubles{2147483647, 4294967294.0, 4294967289.0});
  const auto tenths = cumsum(Tensor<float>::full({300000}, 0.1F), 0);
  CHECK(tenths.at(-1) == static_cast<float>(300000 * static_cast<double>(0.1F)));
  const auto x = cumsum(with_nan(float()), 0);
  CHECK(x.at(0) == 1);
  for (int i = 1; i < 8; ++i) CHECK(std::isnan(x.at(i)));
  Tensor<double> y({3, 40, 300});
  for (std::int64_t i = 0; i < y.numel(); ++i) y.data()[i] = std::sin(static_cast<double>(i));
  auto sums = y.clone();
  cumulate(Cumulative::sum, y, 1, true, sums, true);
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    double expected = y.data()[i];
    for (std::int64_t k = i; k < (i / 12000 + 1) * 12000; k += 300) expected += y.data()[k];
    if (std::abs(sums.data()[i] - expected) > 1e-12) FAIL("element " << i);
  }
}

TEST_CASE("searches have the same results for any number of threads") {
  const auto x = random_tensor<float>({300, 700}, 1);
  const auto run = [&](int threads) {
    Doubles results;
    with_threads(threads, [&] {
      for (const int dim : {0, 1}) {
        for (const auto& values :
             {as_doubles(argmax(x, dim)), as_doubles(topk(x, 7, dim).indices), as_doubles(cumsum(x, dim))}) {
          results.insert(results.end(), values.begin(), values.end());
        }
      }
    });
    return results;
  };
  const auto alone = run(1);
  CHECK(run(2) == alone);
  CHECK(run(3) == alone);
}

TEST_CASE("searches of nothing, of a scalar, and what they refuse") {
  const Tensor<float> empty({0, 3});
  CHECK(argmax(empty, 1).shape() == Shape{0});
  CHECK(sort(empty, 0).values.shape() == Shape{0, 3});
  CHECK(sort(empty, 1).indices.shape() == Shape{0, 3});
  CHECK(topk(empty, 2, 1).values.shape() == Shape{0, 2});
  CHECK(topk(Tensor<float>::zeros({3, 2}), 0, 0).indices.shape() == Shape{0, 2});
  CHECK(cumsum(empty, 0).shape() == Shape{0, 3});
  CHECK(cumprod(empty, 1).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(argmax(empty), ContainsSubstring("argmax: x has shape [0, 3], which has no element to choose from"));
  CHECK_THROWS_WITH(argmin(empty, 0), ContainsSubstring("argmin: x has shape [0, 3]"));
  CHECK_THROWS_WITH(max_with_index(empty, 0), ContainsSubstring("no element to choose from"));
  const auto scalar = Tensor<float>::full({}, 3);
  CHECK(argmax(scalar).item() == 0);
  CHECK(argmax(scalar, -1).item() == 0);
  CHECK(sort(scalar).values.item() == 3);
  CHECK(topk(scalar, 1).indices.shape() == Shape{});
  CHECK(cumsum(scalar, 0).item() == 3);
  CHECK_THROWS_WITH(topk(scalar, 0), ContainsSubstring("topk: k is 0, but a scalar has one element"));
  const auto x = Tensor<float>::zeros({2, 3});
  CHECK_THROWS_WITH(topk(x, 4), ContainsSubstring("topk: k is 4, but dim -1 of the shape [2, 3] has 3 elements"));
  CHECK_THROWS_WITH(topk(x, -1), ContainsSubstring("topk: k is -1"));
  CHECK_THROWS_WITH(sort(x, 2), ContainsSubstring("sort: a tensor of shape [2, 3] has no dim 2"));
  CHECK_THROWS_WITH(argmax(x, -3), ContainsSubstring("argmax: a tensor of shape [2, 3] has no dim -3"));
  CHECK_THROWS_WITH(cumprod(x, 2), ContainsSubstring("cumprod: a tensor of shape [2, 3] has no dim 2"));
  const Tensor<float> none;
  CHECK_THROWS_WITH(argmax(none), ContainsSubstring("argmax: x is undefined"));
  CHECK_THROWS_WITH(max_with_index(none, 0), ContainsSubstring("max_with_index: x is undefined"));
  CHECK_THROWS_WITH(sort(none), ContainsSubstring("sort: x is undefined"));
  CHECK_THROWS_WITH(topk(none, 1), ContainsSubstring("topk: x is undefined"));
  CHECK_THROWS_WITH(cumsum(none, 0), ContainsSubstring("cumsum: x is undefined"));
}
