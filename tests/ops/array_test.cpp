#include "trireme/ops/array/array.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Functions that move elements, against values of torch 2.15, and the copy below them against plain loops.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
std::vector<int> whole_numbers(const Tensor<T>& x) {
  std::vector<int> numbers;
  for (const T element : x.span()) numbers.push_back(static_cast<int>(static_cast<Accumulate<T>>(element)));
  return numbers;
}

template <typename T>
void expect(const char* what, const Tensor<T>& got, const Shape& shape, const std::vector<int>& values) {
  CAPTURE(what);
  CHECK(got.shape().str() == shape.str());
  CHECK(whole_numbers(got) == values);
}

}  // namespace

TEMPLATE_TEST_CASE("functions that move elements", "", float, double, bfloat16, float16, std::int32_t, std::int64_t) {
  const auto x = arange<TestType>(24).reshape({2, 3, 4});
  expect("permute(x, {2, 0, 1})", permute(x, {2, 0, 1}), {4, 2, 3},
         {0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23});
  expect("permute(x, {-2, -1, 0})", permute(x, {-2, -1, 0}), {3, 4, 2},
         {0, 12, 1, 13, 2, 14, 3, 15, 4, 16, 5, 17, 6, 18, 7, 19, 8, 20, 9, 21, 10, 22, 11, 23});
  expect("slice(x, 1, -2)", slice(x, 1, -2), {2, 2, 4}, {4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23});
  expect("slice(x, -1, 0, 100, 3)", slice(x, -1, 0, 100, 3), {2, 3, 2}, {0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23});
  expect("slice(x, 0, 1)", slice(x, 0, 1), {1, 3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  expect("slice(x, 1, 2, -2)", slice(x, 1, 2, -2), {2, 0, 4}, {});
  expect("slice(x, {{1}, {}, {-3, -1}})", slice(x, {{1}, {}, {-3, -1}}), {1, 3, 2}, {13, 14, 17, 18, 21, 22});
  expect("slice(x, {{}, {0, 3, 2}})", slice(x, {{}, {0, 3, 2}}), {2, 2, 4},
         {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23});
  expect("expand(slice(x, 1, 1, 2), {2, 2, 2, 4})", expand(slice(x, 1, 1, 2), {2, 2, 2, 4}), {2, 2, 2, 4},
         {4, 5, 6, 7, 4, 5, 6, 7, 16, 17, 18, 19, 16, 17, 18, 19, 4, 5, 6, 7, 4, 5, 6, 7, 16, 17, 18, 19, 16, 17, 18, 19});
  expect("repeat(slice(x, {{0, 1}, {0, 2}, {0, 2}}), {2, 2, 1, 3})", repeat(slice(x, {{0, 1}, {0, 2}, {0, 2}}), {2, 2, 1, 3}),
         {2, 2, 2, 6}, {0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5, 0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5,
                        0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5, 0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5});
  expect("roll(x, 1, 2)", roll(x, 1, 2), {2, 3, 4},
         {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 19, 16, 17, 18, 23, 20, 21, 22});
  expect("roll(x, {-1, 5}, {0, 2})", roll(x, {-1, 5}, {0, 2}), {2, 3, 4},
         {15, 12, 13, 14, 19, 16, 17, 18, 23, 20, 21, 22, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10});
  expect("roll(x, {1, 1}, {1, 1})", roll(x, {1, 1}, {1, 1}), {2, 3, 4},
         {4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 15});
  expect("flip(x, {0, -1})", flip(x, {0, -1}), {2, 3, 4},
         {15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21, 20, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8});
  expect("unfold(x, 2, 2, 1)", unfold(x, 2, 2, 1), {2, 3, 3, 2},
         {0,  1,  1,  2,  2,  3,  4,  5,  5,  6,  6,  7,  8,  9,  9,  10, 10, 11,
          12, 13, 13, 14, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 21, 22, 22, 23});
  expect("unfold(x, 1, 2, 1)", unfold(x, 1, 2, 1), {2, 2, 4, 2},
         {0, 4, 1, 5, 2, 6, 3, 7, 4, 8, 5, 9, 6, 10, 7, 11, 12, 16, 13, 17, 14, 18, 15, 19, 16, 20, 17, 21, 18, 22, 19, 23});
  expect("unfold(x, -1, 1, 3)", unfold(x, -1, 1, 3), {2, 3, 2, 1}, {0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23});
  expect("pad(x, {1, 2})", pad(x, {1, 2}), {2, 3, 7},
         {0, 0,  1,  2,  3,  0, 0, 0, 4,  5,  6,  7,  0, 0, 0, 8,  9,  10, 11, 0, 0,
          0, 12, 13, 14, 15, 0, 0, 0, 16, 17, 18, 19, 0, 0, 0, 20, 21, 22, 23, 0, 0});
  expect("pad(x, {-1, 1, 1, -2, 0, 1}, {.value = 7})", pad(x, {-1, 1, 1, -2, 0, 1}, {.value = 7}), {3, 2, 4},
         {7, 7, 7, 7, 1, 2, 3, 7, 7, 7, 7, 7, 13, 14, 15, 7, 7, 7, 7, 7, 7, 7, 7, 7});
  expect("pad(x, {3, 1}, {.mode = PadMode::reflect})", pad(x, {3, 1}, {.mode = PadMode::reflect}), {2, 3, 8},
         {3,  2,  1,  0,  1,  2,  3,  2,  7,  6,  5,  4,  5,  6,  7,  6,  11, 10, 9,  8,  9,  10, 11, 10,
          15, 14, 13, 12, 13, 14, 15, 14, 19, 18, 17, 16, 17, 18, 19, 18, 23, 22, 21, 20, 21, 22, 23, 22});
  expect("pad(x, {1, 2, 2, 1}, {.mode = PadMode::reflect})", pad(x, {1, 2, 2, 1}, {.mode = PadMode::reflect}), {2, 6, 7},
         {9,  8,  9,  10, 11, 10, 9,  5,  4,  5,  6,  7,  6,  5,  1,  0,  1,  2,  3,  2,  1,  5,  4,  5,  6,  7,  6,  5,
          9,  8,  9,  10, 11, 10, 9,  5,  4,  5,  6,  7,  6,  5,  21, 20, 21, 22, 23, 22, 21, 17, 16, 17, 18, 19, 18, 17,
          13, 12, 13, 14, 15, 14, 13, 17, 16, 17, 18, 19, 18, 17, 21, 20, 21, 22, 23, 22, 21, 17, 16, 17, 18, 19, 18, 17});
  expect("pad(x, {1, 2, 3, 0}, {.mode = PadMode::replicate})", pad(x, {1, 2, 3, 0}, {.mode = PadMode::replicate}), {2, 6, 7},
         {0,  0,  1,  2,  3,  3,  3,  0,  0,  1,  2,  3,  3,  3,  0,  0,  1,  2,  3,  3,  3,  0,  0,  1,  2,  3,  3,  3,
          4,  4,  5,  6,  7,  7,  7,  8,  8,  9,  10, 11, 11, 11, 12, 12, 13, 14, 15, 15, 15, 12, 12, 13, 14, 15, 15, 15,
          12, 12, 13, 14, 15, 15, 15, 12, 12, 13, 14, 15, 15, 15, 16, 16, 17, 18, 19, 19, 19, 20, 20, 21, 22, 23, 23, 23});
  expect("triu(x)", triu(x), {2, 3, 4}, {0, 1, 2, 3, 0, 5, 6, 7, 0, 0, 10, 11, 12, 13, 14, 15, 0, 17, 18, 19, 0, 0, 22, 23});
  expect("triu(x, -1)", triu(x, -1), {2, 3, 4},
         {0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0, 21, 22, 23});
  expect("triu(x, 2)", triu(x, 2), {2, 3, 4}, {0, 0, 2, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 14, 15, 0, 0, 0, 19, 0, 0, 0, 0});
  expect("tril(x)", tril(x), {2, 3, 4}, {0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10, 0, 12, 0, 0, 0, 16, 17, 0, 0, 20, 21, 22, 0});
  expect("tril(x, 1)", tril(x, 1), {2, 3, 4},
         {0, 1, 0, 0, 4, 5, 6, 0, 8, 9, 10, 11, 12, 13, 0, 0, 16, 17, 18, 0, 20, 21, 22, 23});
  expect("tril(x, -5)", tril(x, -5), {2, 3, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  expect("cat({x, slice(x, 1, 0, 1)}, 1)", cat({x, slice(x, 1, 0, 1)}, 1), {2, 4, 4},
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 15});
  expect("cat({x, slice(x, 2, 0, 1)}, -1)", cat({x, slice(x, 2, 0, 1)}, -1), {2, 3, 5},
         {0, 1, 2, 3, 0, 4, 5, 6, 7, 4, 8, 9, 10, 11, 8, 12, 13, 14, 15, 12, 16, 17, 18, 19, 16, 20, 21, 22, 23, 20});
  expect("stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, 0)", stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, 0), {2, 2, 1, 4},
         {0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11, 20, 21, 22, 23});
  expect("stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, -1)", stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, -1), {2, 1, 4, 2},
         {0, 8, 1, 9, 2, 10, 3, 11, 12, 20, 13, 21, 14, 22, 15, 23});
  expect("stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, 1)", stack({slice(x, 1, 0, 1), slice(x, 1, 2, 3)}, 1), {2, 2, 1, 4},
         {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23});
}

TEST_CASE("elements of bool are moved") {
  const bool values[] = {true, false, false, true, true, true};
  const auto x = Tensor<bool>::from({2, 3}, values);
  expect("permute", permute(x, {1, 0}), {3, 2}, {1, 1, 0, 1, 0, 1});
  expect("cat", cat({x, x}, 1), {2, 6}, {1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1});
  expect("pad", pad(x, {1, 0}, {.value = 1}), {2, 4}, {1, 1, 0, 0, 1, 1, 1, 1});
  expect("tril", tril(x), {2, 3}, {1, 0, 0, 1, 1, 0});
  expect("eye", eye<bool>(2), {2, 2}, {1, 0, 0, 1});
  Tensor<bool> y({6});
  StridedCopy box;
  box.add({.extent = 6, .from = 1, .to = 1});
  CHECK_THROWS_WITH(ops::copy_strided(box, x, y, true), "copy_strided: elements of bool can't be added");
}

TEST_CASE("transposed tensors, and views that share elements") {
  const auto x = arange<float>(24).reshape({2, 3, 4});
  expect("transpose", transpose(x, 0, -1), {4, 3, 2}, whole_numbers(permute(x, {2, 1, 0})));
  const auto shares = [&](const Tensor<float>& y) { return y.storage() == x.storage(); };
  CHECK(shares(slice(x, 0, 1)));
  CHECK(shares(narrow(x, -3, 1, 1)));
  CHECK(shares(split(x, 1)[1]));
  CHECK(shares(chunk(x, 2)[1]));
  CHECK(shares(flatten(x)));
  CHECK(shares(squeeze(x)));
  CHECK(shares(unsqueeze(x, -1)));
  CHECK_FALSE(shares(slice(x, 0, 0, 2, 2)));
  CHECK_FALSE(shares(slice(x, 1, 0)));
  CHECK_FALSE(shares(slice(x, {{}})));
  CHECK_FALSE(shares(expand(x, {2, 3, 4})));
  CHECK_FALSE(shares(permute(x, {0, 1, 2})));
}

TEST_CASE("shapes of the same elements") {
  const Tensor<float> x({1, 3, 1, 2});
  CHECK(squeeze(x).shape() == Shape{3, 2});
  CHECK(squeeze(x, 0).shape() == Shape{3, 1, 2});
  CHECK(squeeze(x, -2).shape() == Shape{1, 3, 2});
  CHECK(squeeze(x, 1).shape() == x.shape());
  CHECK(unsqueeze(x, 0).shape() == Shape{1, 1, 3, 1, 2});
  CHECK(unsqueeze(x, -1).shape() == Shape{1, 3, 1, 2, 1});
  CHECK(unsqueeze(x, -2).shape() == Shape{1, 3, 1, 1, 2});
  CHECK(flatten(x).shape() == Shape{6});
  CHECK(flatten(x, 1, -1).shape() == Shape{1, 6});
  CHECK(flatten(x, 1, 2).shape() == Shape{1, 3, 2});
  const Tensor<float> scalar((Shape()));
  CHECK(flatten(scalar).shape() == Shape{1});
  CHECK(unsqueeze(scalar, 0).shape() == Shape{1});
  CHECK(squeeze(Tensor<float>({1, 1})).shape() == Shape());
}

TEST_CASE("parts of a dim have torch's sizes") {
  const auto sizes = [](const std::vector<Tensor<float>>& parts) {
    std::vector<std::int64_t> found;
    for (const auto& part : parts) found.push_back(part.dim(-1));
    return found;
  };
  using Sizes = std::vector<std::int64_t>;
  const auto row = [](std::int64_t count) { return Tensor<float>({2, count}); };
  CHECK(sizes(chunk(row(7), 3, 1)) == Sizes{3, 3, 1});
  CHECK(sizes(chunk(row(5), 4, -1)) == Sizes{2, 2, 1});
  CHECK(sizes(chunk(row(2), 5, 1)) == Sizes{1, 1});
  CHECK(sizes(chunk(row(0), 3, 1)) == Sizes{0, 0, 0});
  CHECK(sizes(split(row(7), 3, 1)) == Sizes{3, 3, 1});
  CHECK(sizes(split(row(0), 3, 1)) == Sizes{0});
  CHECK(sizes(split(row(0), 0, 1)) == Sizes{0});
  CHECK(sizes(split(row(7), {3, 0, 4}, 1)) == Sizes{3, 0, 4});
  const auto parts = split(arange<float>(6).reshape({2, 3}), {1, 2}, 1);
  expect("first", parts[0], {2, 1}, {0, 3});
  expect("second", parts[1], {2, 2}, {1, 2, 4, 5});
}

TEST_CASE("a known number of parts, and one index of a dim") {
  const auto x = arange<float>(12).reshape({2, 6});
  const auto [a, b, c] = chunk<3>(x, -1);
  CHECK((a.shape() == Shape{2, 2} && b.at(0, 0) == 2 && c.at(1, 1) == 11));
  CHECK_THROWS_WITH(chunk<4>(x, 1), "chunk: dim 1 of x [2, 6] gives 3 parts, not 4");
  CHECK_THROWS_WITH(chunk<2>(Tensor<float>()), "chunk: x is undefined");
  CHECK(select(x, 0, 1).to_vector() == std::vector<float>{6, 7, 8, 9, 10, 11});
  CHECK(select(x, 0, 1).data() == x.data() + 6);  // a view
  CHECK(select(x, -1, -2).to_vector() == std::vector<float>{4, 10});
  CHECK(select(Tensor<float>::full({1, 1, 3}, 2), 0, 0).shape() == Shape{1, 3});
  CHECK(select(Tensor<bool>::full({2}, true), 0, 1).item());
  CHECK_THROWS_WITH(select(x, 1, 6), "select: index 6 lies outside dim 1 of x [2, 6]");
  CHECK_THROWS_WITH(select(x, 0, -3), "select: index -3 lies outside dim 0 of x [2, 6]");
  CHECK_THROWS_WITH(select(Tensor<float>({0, 2}), 0, 0), "select: index 0 lies outside dim 0 of x [0, 2]");
  CHECK_THROWS_WITH(select(Tensor<float>::full({}, 1), 0, 0), "select: x [] has no dim 0");
}

TEST_CASE("one dim of a shape may be left open, and numbers may be whole") {
  const auto x = arange<float>(std::int64_t{12});
  CHECK(x.reshape({-1, 4}).shape() == Shape{3, 4});
  CHECK(x.reshape({3, -1}).data() == x.data());
  CHECK_THROWS_AS(x.reshape({5, -1}), Error);
  CHECK(arange<std::int64_t>(3).to_vector() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(arange<double>(2.5).numel() == 3);
}

TEST_CASE("new tensors") {
  require_close(arange<float>(0, 1, 0.3), {0, 0.3, 0.6, 0.9}, 1e-7);
  expect("down", arange<std::int64_t>(5, -5, -3), {4}, {5, 2, -1, -4});
  CHECK(arange<float>(3, 3).numel() == 0);
  require_close(linspace<double>(-1, 1, 7), {-1, -2.0 / 3, -1.0 / 3, 0, 1.0 / 3, 2.0 / 3, 1}, 1e-15);
  require_close(linspace<bfloat16>(3, 4, 4), {3, 3.328125, 3.671875, 4}, 0);
  require_close(linspace<float>(2, 5, 1), {2}, 0);
  CHECK(linspace<float>(2, 5, 0).numel() == 0);
  expect("eye", eye<std::int32_t>(2, 3), {2, 3}, {1, 0, 0, 0, 1, 0});
  expect("eye", eye<float16>(3, 2), {3, 2}, {1, 0, 0, 1, 0, 0});
  CHECK(eye<float>(0).numel() == 0);
  const Tensor<bfloat16> x({1, 2});
  expect("zeros", zeros_like(x), {1, 2}, {0, 0});
  expect("ones", ones_like(x), {1, 2}, {1, 1});
  expect("full", full_like(x, bfloat16(3.0f)), {1, 2}, {3, 3});
  CHECK_THROWS_WITH(arange<float>(0, 5, 0), ContainsSubstring("all must be finite, and the step not 0"));
  CHECK_THROWS_WITH(arange<float>(0, 5, -1), ContainsSubstring("is the opposite direction of the step"));
}

TEST_CASE("windows that do not fit, and of the most dims, are refused") {
  const auto x = arange<float>(24).reshape({2, 3, 4});
  CHECK_THROWS_WITH(unfold(x, 1, 4, 1),
                    ContainsSubstring("unfold: windows of size 4 and step 1 do not fit dim 1 of x [2, 3, 4]"));
  CHECK_THROWS_AS(unfold(x, 1, 0, 1), Error);
  CHECK_THROWS_AS(unfold(x, 1, 2, 0), Error);
  CHECK_THROWS_WITH(unfold(x, 3, 1, 1), ContainsSubstring("has no dim 3"));
  CHECK_THROWS_WITH(unfold(x.reshape({2, 3, 4, 1, 1, 1}), 1, 2, 1), ContainsSubstring("has 6 dims, which is the most"));
}

TEMPLATE_TEST_CASE("random elements are a function of seed, stream and number", "", float, double, bfloat16, float16) {
  const RandomElements of{.seed = 3, .stream = "noise"};
  const auto all = random_normal<TestType>({40, 5}, of, 2, 0.5);
  const auto part = random_normal<TestType>({10, 5}, {.seed = 3, .stream = "noise", .first = 50}, 2, 0.5);
  CHECK(part.to_vector() == all.narrow(10, 10).to_vector());
  CHECK(random_normal<TestType>({40, 5}, {.seed = 4, .stream = "noise"}, 2, 0.5).to_vector() != all.to_vector());
  CHECK(random_normal<TestType>({40, 5}, {.seed = 3, .stream = "other"}, 2, 0.5).to_vector() != all.to_vector());
  double sum = 0, squares = 0;
  for (const double element : as_doubles(random_normal<TestType>({20000}, of, 2, 0.5))) {
    sum += element;
    squares += (element - 2) * (element - 2);
  }
  CHECK(sum / 20000 == Approx(2).margin(0.02));
  CHECK(squares / 20000 == Approx(0.25).margin(0.02));
  const auto uniform = as_doubles(random_uniform<TestType>({20000}, of));
  CHECK(*std::min_element(uniform.begin(), uniform.end()) >= 0);
  CHECK(*std::max_element(uniform.begin(), uniform.end()) < 1);
  CHECK(std::accumulate(uniform.begin(), uniform.end(), 0.0) / 20000 == Approx(0.5).margin(0.02));
  const auto above = as_doubles(random_uniform<TestType>({20000}, of, 1, 2));  // where rounding may reach the upper bound
  CHECK(*std::min_element(above.begin(), above.end()) >= 1);
  CHECK(*std::max_element(above.begin(), above.end()) < 2);
  CHECK(std::accumulate(above.begin(), above.end(), 0.0) / 20000 == Approx(1.5).margin(0.02));
}

TEST_CASE("random whole numbers, and what is refused") {
  const auto dice = random_integers<std::int64_t>({6000}, {.seed = 1, .stream = "dice"}, 1, 7);
  for (std::int64_t face = 0; face < 9; ++face) {
    const auto count = std::count(dice.data(), dice.data() + dice.numel(), face);
    CHECK((face >= 1 && face < 7 ? std::abs(count - 1000) < 150 : count == 0));
  }
  CHECK(random_integers<std::int32_t>({0}, {}, 0, 1).numel() == 0);
  CHECK_THROWS_WITH(random_integers<std::int32_t>({1}, {}, 2, 2), ContainsSubstring("there is no integer in [2, 2)"));
  CHECK_THROWS_WITH(random_normal<float>({1}, {}, 0, -1), ContainsSubstring("the standard deviation is -1"));
  CHECK_THROWS_WITH(random_uniform<float>({1}, {.first = -1}), ContainsSubstring("must not be below 0"));
}

TEST_CASE("empty tensors, scalars and six dims") {
  const Tensor<float> empty({2, 0, 3});
  CHECK(permute(empty, {1, 0, 2}).shape() == Shape{0, 2, 3});
  CHECK(flip(empty, {0, 1}).shape() == empty.shape());
  CHECK(roll(empty, 1, 1).shape() == empty.shape());
  expect("pad", pad(empty, {0, 0, 1, 0}, {.value = 2}), {2, 1, 3}, {2, 2, 2, 2, 2, 2});
  CHECK(expand(Tensor<float>({1, 3}), {0, 3}).numel() == 0);
  CHECK(repeat(empty, {2, 2, 0}).shape() == Shape{4, 0, 0});
  CHECK(cat({empty, Tensor<float>::full({2, 1, 3}, 5)}, 1).shape() == Shape{2, 1, 3});
  CHECK(triu(empty).shape() == empty.shape());
  CHECK(stack({empty, empty}, 3).shape() == Shape{2, 0, 3, 2});
  const auto scalar = Tensor<float>::full({}, 3);
  expect("expand", expand(scalar, {2, 2}), {2, 2}, {3, 3, 3, 3});
  expect("repeat", repeat(scalar, {3}), {3}, {3, 3, 3});
  expect("stack", stack({scalar, scalar}), {2}, {3, 3});
  expect("permute", permute(scalar, {}), {}, {3});
  const auto six = arange<float>(64).reshape({2, 2, 2, 2, 2, 2});
  CHECK(permute(six, {5, 4, 3, 2, 1, 0}).at(1, 0, 0, 0, 1, 1) == 49);
  CHECK(repeat(six, {2, 2, 2, 2, 2, 2}).at(3, 2, 2, 1, 3, 0) == 38);
  CHECK(flip(roll(six, {1, 1, 1, 1, 1, 1}, {0, 1, 2, 3, 4, 5}), {0, 1, 2, 3, 4, 5}).at(0, 0, 0, 0, 0, 1) == 1);
}

TEST_CASE("what moves no elements says why") {
  const auto x = arange<float>(24).reshape({2, 3, 4});
  const Tensor<float> none;
  CHECK_THROWS_WITH(permute(x, {0, 1}), "permute: x [2, 3, 4] has 3 dims, but 2 are named");
  CHECK_THROWS_WITH(permute(x, {0, 1, -2}), "permute: dim -2 is named twice");
  CHECK_THROWS_WITH(permute(x, {0, 1, 3}), "permute: x [2, 3, 4] has no dim 3");
  CHECK_THROWS_WITH(flip(x, {-4}), "flip: x [2, 3, 4] has no dim -4");
  CHECK_THROWS_WITH(slice(x, 1, 2, 0, -1), "slice: step -1 is below 1; flip() reverses a dim");
  CHECK_THROWS_WITH(slice(x, 3, 0), "slice: x [2, 3, 4] has no dim 3");
  CHECK_THROWS_WITH(slice(x, {{}, {}, {}, {}}), "slice: 4 slices are more than the dims of x [2, 3, 4]");
  CHECK_THROWS_WITH(narrow(x, 1, 2, 2), "narrow: 2 elements from 2 on lie outside dim 1 of x [2, 3, 4]");
  CHECK_THROWS_WITH(split(x, {1, 1}, 1), "split: the sizes add up to 2, but the dim has 3 elements");
  CHECK_THROWS_WITH(split(x, {2, -1, 2}, 1), "split: a size is -1, but must not be below 0");
  CHECK_THROWS_WITH(split(x, {2, std::numeric_limits<std::int64_t>::max()}, 1),
                    "split: the sizes add up to more than the 3 elements of the dim");
  CHECK_THROWS_WITH(split(x, 0, 1), "split: the size is 0, but must be above 0 for a dim of 3 elements");
  CHECK_THROWS_WITH(chunk(x, 0), "chunk: there are 0 parts, but must be at least 1");
  CHECK_THROWS_WITH(expand(x, {2, 3, 5}), "expand: x [2, 3, 4] can't become [2, 3, 5]: only dims of one element are repeated");
  CHECK_THROWS_WITH(expand(x, {3, 4}), "expand: [3, 4] has fewer dims than x [2, 3, 4]");
  CHECK_THROWS_WITH(repeat(x, {1, 1}), ContainsSubstring("needs a number for each of its dims"));
  CHECK_THROWS_WITH(repeat(x, {1, 1, -1}), "repeat: -1 times is below 0");
  CHECK_THROWS_WITH(repeat(x, {1, 1, std::int64_t{1} << 62}), ContainsSubstring("has more than 2^63 elements"));
  CHECK_THROWS_WITH(pad(x, {1}), ContainsSubstring("pad: 1 amounts for x [2, 3, 4]"));
  CHECK_THROWS_WITH(pad(x, {1, std::numeric_limits<std::int64_t>::max()}), ContainsSubstring("are too many elements"));
  CHECK_THROWS_WITH(pad(x, {-2, -3}), "pad: -2 and -3 take more from dim 2 of x [2, 3, 4] than it has");
  CHECK_THROWS_WITH(pad(x, {4, 0}, {.mode = PadMode::reflect}),
                    "pad: dim 2 of x [2, 3, 4] can't be reflected by 4 and 0: amounts lie in [0, 4)");
  CHECK_THROWS_WITH(pad(x, {-1, 0}, {.mode = PadMode::replicate}), ContainsSubstring("can't be replicated by -1 and 0"));
  CHECK_THROWS_WITH(cat(std::vector<Tensor<float>>()), "cat: the list of tensors is empty");
  CHECK_THROWS_WITH(cat({x, Tensor<float>({2, 3, 5})}, 1), ContainsSubstring("cat: tensor 1 is [2, 3, 5], but the first is"));
  CHECK_THROWS_WITH(stack({x, Tensor<float>({2, 3, 5})}), "stack: tensor 1 is [2, 3, 5], but the first is [2, 3, 4]");
  CHECK_THROWS_WITH(cat({x, none}), "cat: tensor 1 is undefined");
  CHECK_THROWS_WITH(permute(none, {}), "permute: x is undefined");
  CHECK_THROWS_WITH(triu(arange<float>(3)), "triu: x [3] has no rows and columns");
  CHECK_THROWS_WITH(flatten(x, 2, 1), "flatten: start_dim 2 is after end_dim 1 of x [2, 3, 4]");
  CHECK_THROWS_WITH(unsqueeze(x, 4), "unsqueeze: x [2, 3, 4] has no place 4 for a dim");
}
