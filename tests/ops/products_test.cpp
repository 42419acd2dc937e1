#include "trireme/ops/matmul/products.hpp"

#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/reduce/softmax.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

// ((i * 7) % 11 - 5) / 2, exact in every type; so are short sums of products.
template <typename T>
Tensor<T> pattern(const Shape& shape) {
  Tensor<T> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 11 - 5) / 2);
  return x;
}

template <typename T>
void check(const Tensor<T>& got, const Shape& shape, const Doubles& expected) {
  CHECK(got.shape() == shape);
  CHECK(as_doubles(got) == expected);
}

}  // namespace

TEMPLATE_TEST_CASE("einsum gives PyTorch's values", "", float, double, bfloat16, float16) {
  const auto x = [](const Shape& shape) { return pattern<TestType>(shape); };
  check(einsum("bij,bjk->bik", x({2, 3, 4}), x({2, 4, 3})), {2, 3, 3},
        {10.5, -3.25, -3.25, -1, -0.25, -2.25, 4, 0, 7, 0.25, -5.75, 4.75, 0.5, 3.5, -1.75, 0.75, 1.75, 0});
  check(einsum("bij,bjk->kb", x({2, 3, 4}), x({2, 4, 3})), {3, 2}, {13.5, 1.5, -3.5, -0.5, 1.5, 3});
  check(einsum("ijk,lmk->jl", x({2, 3, 4}), x({2, 3, 4})), {3, 2}, {6.75, -3, 5.5, 0.25, 1.5, 0.75});
  check(einsum("ijk->ki", x({2, 3, 4})), {4, 2}, {-4, 1, 1, 0.5, 0.5, 0, 0, -0.5});
  check(einsum("ij, jk", x({2, 3}), x({3, 2})), {2, 2}, {4.75, 1.5, -7.5, 6});
  check(einsum("i,j->ji", x({2}), x({3})), {3, 2}, {6.25, -2.5, -2.5, 1, 2.5, -1});
  check(einsum("i,i", x({3}), x({3})), {}, {8.25});
  check(einsum("ba", x({2, 3})), {3, 2}, {-2.5, 2.5, 1, 0.5, -1, -1.5});
  check(einsum("ij->", x({2, 3})), {}, {-1});
  check(einsum("bhqd,bhkd->bhqk", x({1, 2, 2, 3}), x({1, 2, 2, 3})), {1, 2, 2, 2}, {8.25, -4.25, -4.25, 8.75, 8, 8, 8, 8.75});
  check(einsum("i,->i", x({3}), x({})), {3}, {6.25, -2.5, 2.5});
  check(einsum("ij,jk->ik", x({2, 0}), x({0, 2})), {2, 2}, {0, 0, 0, 0});
  check(einsum("ij,jk->ik", x({0, 2}), x({2, 2})), {0, 2}, {});
}

TEST_CASE("einsum of six dims and of every order") {
  const auto x = random_tensor<double>({2, 3, 2, 2, 3, 2}, 1);
  const auto y = einsum("abcdef->fbdace", x);
  CHECK(y.shape() == Shape{2, 3, 2, 2, 2, 3});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t f = i % 2, e = i / 2 % 3, d = i / 6 % 2, c = i / 12 % 2, b = i / 24 % 3, a = i / 72;
    if (y.at(f, b, d, a, c, e) != x.data()[i]) FAIL("element " << i);
  }
  require_close(
      einsum("abcdef,fbdace->ca", x, y),
      [&] {
        Doubles expected(4);
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          expected[static_cast<std::size_t>(i / 12 % 2 * 2 + i / 72)] += x.data()[i] * x.data()[i];
        }
        return expected;
      }(),
      1e-12);
}

TEST_CASE("einsum refuses what it does not know") {
  const auto m = pattern<float>({2, 3});
  const auto refused = [&](std::string_view equation, const std::string& text) {
    CHECK_THROWS_WITH(einsum(equation, m, m), ContainsSubstring(text));
  };
  refused("ij,jk->ik", "einsum: j of \"ij,jk->ik\" is 3 in one operand and 2 in the other");
  refused("ij->ij", "einsum: \"ij->ij\" has 1 operands, but 2 were given");
  refused("ij,ij,ij", "has 3 operands, but 2 were given");
  refused("ijk,ij", "operand 1 of \"ijk,ij\" has the dims ijk, but its shape is [2, 3]");
  refused("ii,ij", "i occurs twice in an operand of \"ii,ij\": diagonals are not supported");
  refused("ij,ij->iij", "i occurs twice in the result");
  refused("ij,ij->k", "k is in the result of \"ij,ij->k\", but in no operand");
  refused("...j,ij", "'.' in \"...j,ij\" is not a letter");
  refused("ij,ij->i->j", "is not a letter");
  CHECK_THROWS_WITH(einsum("ij,ij", Tensor<float>(), m), ContainsSubstring("einsum: a is undefined"));
  CHECK_THROWS_WITH(einsum("ij", Tensor<float>()), ContainsSubstring("einsum: x is undefined"));
  CHECK_THROWS_WITH(einsum("", m), ContainsSubstring("has the dims , but its shape is [2, 3]"));
}

TEMPLATE_TEST_CASE("matmul of tensors, with vectors as PyTorch has them", "", float, double, bfloat16, float16) {
  const auto x = [](const Shape& shape) { return pattern<TestType>(shape); };
  check(matmul(x({2, 3}), x({3, 2})), {2, 2}, {4.75, 1.5, -7.5, 6});
  check(matmul(x({3}), x({2, 3, 2})), {2, 2}, {4.75, 1.5, -6.5, 4});
  check(matmul(x({2, 2, 3}), x({3})), {2, 2}, {8.25, -4.25, -3, -1.75});
  check(matmul(x({3}), x({3})), {}, {8.25});
  check(dot(x({3}), x({3})), {}, {8.25});
  check(outer(x({2}), x({3})), {2, 3}, {6.25, -2.5, 2.5, -2.5, 1, -1});
  check(matmul(x({0}), x({0})), {}, {0});
  check(matmul(x({2, 0}), x({0})), {2}, {0, 0});
  CHECK(matmul(x({2, 1, 2, 3}), x({4, 3, 2})).shape() == Shape{2, 4, 2, 2});
  CHECK(matmul(x({0, 2, 3}), x({3})).shape() == Shape{0, 2});
  CHECK(outer(x({0}), x({3})).shape() == Shape{0, 3});
}

TEST_CASE("products of tensors refuse what does not fit") {
  const auto v = pattern<float>({3});
  const auto m = pattern<float>({2, 3});
  CHECK_THROWS_WITH(matmul(m, m), ContainsSubstring("matmul: [2, 3] and [2, 3] do not fit"));
  CHECK_THROWS_WITH(matmul(m, pattern<float>({2})), ContainsSubstring("matmul: [2, 3] and [2] do not fit"));
  CHECK_THROWS_WITH(matmul(v, m), ContainsSubstring("matmul: [3] and [2, 3] do not fit"));
  CHECK_THROWS_WITH(matmul(v, pattern<float>({})), ContainsSubstring("a scalar is no matrix"));
  CHECK_THROWS_WITH(dot(v, m), ContainsSubstring("dot: the operands have the shapes [3] and [2, 3], but must be vectors"));
  CHECK_THROWS_WITH(dot(v, pattern<float>({4})), ContainsSubstring("matmul: [3] and [4] do not fit"));
  CHECK_THROWS_WITH(outer(m, v), ContainsSubstring("outer: the operands have the shapes"));
  CHECK_THROWS_WITH(matmul(Tensor<float>(), m), ContainsSubstring("matmul: a is undefined"));
  CHECK_THROWS_WITH(outer(v, Tensor<float>()), ContainsSubstring("outer: b is undefined"));
  CHECK_THROWS_WITH(dot(v, Tensor<float>()), ContainsSubstring("dot: b is undefined"));
}

TEMPLATE_TEST_CASE("softmax of tensors over any dim", "", float, double, bfloat16, float16) {
  const auto x = pattern<TestType>({2, 3});
  const double bound = sizeof(TestType) == 2 ? 0x1p-8 : 1e-6;
  require_close(softmax(x, 0), {0.006692850924, 0.622459331202, 0.622459331202, 0.993307149076, 0.377540668798, 0.377540668798},
                bound);
  const auto rows = softmax(x);
  Tensor<TestType> expected(x.shape());
  ops::softmax(x, expected);
  require_identical(rows, expected);
  require_identical(softmax(x, 1), expected);
  ops::log_softmax(x, expected);
  require_identical(log_softmax(x, -1), expected);
  Doubles logarithms = as_doubles(softmax(x, -2));
  for (double& value : logarithms) value = std::log(value);
  require_close(log_softmax(x, 0), logarithms, 4 * bound);
  CHECK_THROWS_WITH(softmax(x, 2), ContainsSubstring("has no dim 2"));
  CHECK_THROWS_WITH(log_softmax(Tensor<TestType>()), ContainsSubstring("log_softmax: x is undefined"));
}
