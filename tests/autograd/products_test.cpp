#include "trireme/ops/matmul/products.hpp"

#include "gradient_check.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/core/bfloat16.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

TEST_CASE("gradients of einsum") {
  const auto check = [](std::string_view equation, const std::vector<Tensor<double>>& operands) {
    CAPTURE(equation);
    expect_passed(check_gradients(
        [&](const Inputs& in) { return in.size() == 2 ? einsum(equation, in[0], in[1]) : einsum(equation, in[0]); }, operands));
  };
  check("bij,bjk->bik", {random({2, 3, 4}, 1), random({2, 4, 2}, 2)});
  check("bij,bjk->kb", {random({2, 3, 4}, 1), random({2, 4, 2}, 2)});
  check("ijk,lmk->jl", {random({2, 3, 4}, 1), random({3, 2, 4}, 2)});
  check("ij,jk", {random({2, 3}, 1), random({3, 2}, 2)});
  check("i,i", {random({3}, 1), random({3}, 2)});
  check("i,j->ji", {random({2}, 1), random({3}, 2)});
  check("abcd->dbca", {random({2, 3, 2, 2}, 1)});
  check("abc->b", {random({2, 3, 2}, 1)});
  check("ij,ij->ij", {random({2, 3}, 1), random({2, 3}, 2)});
  check("ij,jk->ik", {Tensor<double>({0, 3}), random({3, 2}, 2)});
}

TEST_CASE("gradients of products of vectors") {
  expect_passed(check_gradients([](const Inputs& in) { return dot(in[0], in[1]); }, {random({5}, 1), random({5}, 2)}));
  expect_passed(check_gradients([](const Inputs& in) { return dot(in[0], in[0]); }, {random({5}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return outer(in[0], in[1]); }, {random({3}, 1), random({2}, 2)}));
  const auto product = [](const Inputs& in) { return matmul(in[0], in[1]); };
  expect_passed(check_gradients(product, {random({3}, 1), random({3}, 2)}));
  expect_passed(check_gradients(product, {random({3}, 1), random({2, 2, 3, 4}, 2)}));
  expect_passed(check_gradients(product, {random({2, 4, 3}, 1), random({3}, 2)}));
}

TEST_CASE("products of variables have the values of those of tensors, of half types too") {
  const auto a = random<bfloat16>({2, 3, 4}, 1), b = random<bfloat16>({2, 4, 3}, 2);
  const auto values = [](const Tensor<bfloat16>& x) { return std::vector<float>(x.span().begin(), x.span().end()); };
  const Variable<bfloat16> va = a, vb = b;
  CHECK(values(einsum("bij,bjk->ki", va, vb).value()) == values(einsum("bij,bjk->ki", a, b)));
  CHECK(values(matmul(va, vb).value()) == values(matmul(a, b)));
}

TEST_CASE("products of variables refuse what does not fit") {
  const Variable<double> v = random({3}, 1), m = random({2, 3}, 1), none;
  CHECK_THROWS_WITH(dot(v, m), ContainsSubstring("dot: the operands have the shapes [3] and [2, 3], but must be vectors"));
  CHECK_THROWS_WITH(outer(m, v), ContainsSubstring("must be vectors"));
  CHECK_THROWS_WITH(einsum("ij,jk", m, m), ContainsSubstring("einsum: j of \"ij,jk\" is 3"));
  CHECK_THROWS_WITH(einsum("ij,ij", none, m), ContainsSubstring("einsum: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(einsum("ij", none), ContainsSubstring("einsum: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(outer(v, none), ContainsSubstring("outer: operand 2 of 2 is undefined"));
  CHECK_THROWS_WITH(dot(none, v), ContainsSubstring("dot: operand 1 of 2 is undefined"));
}
