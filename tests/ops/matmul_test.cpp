#include "trireme/ops/matmul/matmul.hpp"

#include "ops/compare.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Sizes {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

template <typename T>
Doubles naive(const Tensor<T>& a, const Tensor<T>& b, const Sizes& sizes, bool transpose_a, bool transpose_b) {
  Doubles c;
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t j = 0; j < sizes.n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < sizes.k; ++p) {
        const T left = transpose_a ? a.data()[p * sizes.m + i] : a.data()[i * sizes.k + p];
        const T right = transpose_b ? b.data()[j * sizes.k + p] : b.data()[p * sizes.n + j];
        sum += static_cast<double>(left) * static_cast<double>(right);
      }
      c.push_back(sum);
    }
  }
  return c;
}

}  // namespace

TEMPLATE_TEST_CASE("matmul with every transpose, overwriting and adding", "", float, double) {
  for (const Sizes sizes : {Sizes{1, 1, 1}, Sizes{5, 7, 3}, Sizes{33, 17, 65}, Sizes{64, 96, 200}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        CAPTURE(sizes.m, sizes.n, sizes.k, transpose_a, transpose_b);
        const auto a = random_tensor<TestType>(transpose_a ? Shape{sizes.k, sizes.m} : Shape{sizes.m, sizes.k}, 1);
        const auto b = random_tensor<TestType>(transpose_b ? Shape{sizes.n, sizes.k} : Shape{sizes.k, sizes.n}, 2);
        const auto old = random_tensor<TestType>({sizes.m, sizes.n}, 3);
        const Doubles expected = naive(a, b, sizes, transpose_a, transpose_b);
        auto c = old.clone();
        matmul(a, b, c, {.transpose_a = transpose_a, .transpose_b = transpose_b});
        require_close(c, expected, tolerance<TestType>(2e-5));
        c = old.clone();
        matmul(a, b, c, {.transpose_a = transpose_a, .transpose_b = transpose_b, .accumulate = true});
        require_close(c, add(as_doubles(old), expected), tolerance<TestType>(2e-5));
      }
    }
  }
}

TEMPLATE_TEST_CASE("matmul folds leading dims into rows", "", float, double) {
  const auto a = random_tensor<TestType>({2, 3, 4}, 1);
  const auto b = random_tensor<TestType>({4, 5}, 2);
  Tensor<TestType> c({2, 3, 5});
  matmul(a, b, c);
  require_close(c, naive(a, b, {6, 5, 4}, false, false), tolerance<TestType>(1e-5));
  // The gradient of b: a^T c over all rows.
  Tensor<TestType> db({4, 5});
  matmul(a, c, db, {.transpose_a = true});
  require_close(db, naive(a, c, {4, 5, 6}, true, false), tolerance<TestType>(1e-5));
}

TEMPLATE_TEST_CASE("a product over no elements is 0", "", float, double) {
  const Tensor<TestType> a({2, 0});
  const Tensor<TestType> b({0, 3});
  auto c = Tensor<TestType>::full({2, 3}, 7);
  matmul(a, b, c, {.accumulate = true});
  require_close(c, Doubles(6, 7), 0);
  matmul(a, b, c);
  require_close(c, Doubles(6, 0), 0);
}

TEMPLATE_TEST_CASE("linear with and without bias", "", float, double) {
  const auto x = random_tensor<TestType>({2, 9, 13}, 1);
  const auto weight = random_tensor<TestType>({21, 13}, 2);
  const auto bias = random_tensor<TestType>({21}, 3);
  Doubles expected = naive(x, weight, {18, 21, 13}, false, true);
  Tensor<TestType> y({2, 9, 21});
  linear(x, weight, Tensor<TestType>(), y);
  require_close(y, expected, tolerance<TestType>(1e-5));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(bias.span()[i % 21]);
  linear(x, weight, bias, y);
  require_close(y, expected, tolerance<TestType>(1e-5));
}

TEST_CASE("matmul and linear say which shapes do not fit") {
  const Tensor<float> a({2, 3});
  Tensor<float> c({2, 2});
  CHECK_THROWS_WITH(matmul(a, a, c), ContainsSubstring("a [2, 3] b [2, 3] does not fit"));
  CHECK_THROWS_WITH(linear(a, Tensor<float>({4, 5}), {}, c), ContainsSubstring("a weight of shape [4, 5] needs [..., 5]"));
  Tensor<float> y({2, 4});
  CHECK_THROWS_WITH(linear(a, Tensor<float>({4, 3}), Tensor<float>({3}), y), ContainsSubstring("bias has shape [3]"));
}
