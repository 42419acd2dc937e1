#include "trireme/autograd/operations/array.hpp"

#include "diary.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"

// Functions that move elements, on Variables.
using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

void check(const testing::CheckedFunction& function) { expect_passed(check_gradients(function, {random({2, 3, 4}, 1)})); }

// The gradient of x after that of another use of x was added.
void check_added(const testing::CheckedFunction& function) {
  check([&](const Inputs& in) { return add(sum(multiply(in[0], in[0])), sum(multiply(function(in), function(in)))); });
}

}  // namespace

TEST_CASE("gradients of functions that move elements") {
  const std::vector<testing::CheckedFunction> functions{
      [](const Inputs& in) {
        return permute(in[0], {2, 0, 1});
      },
      [](const Inputs& in) { return slice(in[0], 0, 1); },
      [](const Inputs& in) { return slice(in[0], 1, -2, -1); },
      [](const Inputs& in) { return slice(in[0], -1, 0, 4, 3); },
      [](const Inputs& in) {
        return slice(in[0], {{}, {1}, {0, 4, 2}});
      },
      [](const Inputs& in) { return narrow(in[0], 0, 1, 1); },
      [](const Inputs& in) { return narrow(in[0], 2, -3, 2); },
      [](const Inputs& in) {
        return expand(unsqueeze(in[0], 2), {5, 2, 3, 2, 4});
      },
      [](const Inputs& in) {
        return repeat(in[0], {2, 1, 3, 2});
      },
      [](const Inputs& in) {
        return roll(in[0], {1, -2}, {0, 2});
      },
      [](const Inputs& in) {
        return flip(in[0], {0, 2});
      },
      [](const Inputs& in) { return unfold(in[0], -1, 3, 1); },
      [](const Inputs& in) { return unfold(in[0], 2, 1, 2); },
      [](const Inputs& in) { return unfold(in[0], -1, 2, 2); },
      [](const Inputs& in) { return unfold(in[0], 0, 2, 1); },
      [](const Inputs& in) {
        return pad(in[0], {1, 2, 0, 1}, {.value = 3});
      },
      [](const Inputs& in) {
        return pad(in[0], {-1, 1, 1, -2});
      },
      [](const Inputs& in) {
        return pad(in[0], {3, 1, 2, 2}, {.mode = PadMode::reflect});
      },
      [](const Inputs& in) {
        return pad(in[0], {3, 1, 2, 5, 1, 1}, {.mode = PadMode::replicate});
      },
      [](const Inputs& in) { return triu(in[0], 1); },
      [](const Inputs& in) { return tril(in[0]); },
      [](const Inputs& in) {
        return cat({in[0], slice(in[0], 1, 0, 1), in[0]}, 1);
      },
      [](const Inputs& in) {
        return stack({in[0], in[0]}, -1);
      },
      [](const Inputs& in) {
        return add(split(in[0], {1, 2}, 1)[0], chunk(in[0], 3, 1)[2]);
      },
      [](const Inputs& in) {
        return reshape(in[0], {4, -1});
      },
      [](const Inputs& in) {
        return matmul(in[0], Tensor<double>::full({4, 2}, 2));
      },
      [](const Inputs& in) {
        return matmul(Tensor<double>::full({5, 3}, 2), in[0]);
      },
      [](const Inputs& in) {
        const auto [first, second] = chunk<2>(in[0], -1);
        return multiply(first, second);
      },
      [](const Inputs& in) { return multiply(select(in[0], 0, -1), select(in[0], 0, 0)); },
      [](const Inputs& in) { return select(in[0], 1, 2); },
      [](const Inputs& in) { return add(split(in[0], 1)[0], split(in[0], 1)[1]); },
      [](const Inputs& in) { return squeeze(slice(in[0], 1, 0, 1)); },
      [](const Inputs& in) { return flatten(in[0], 1); }};
  for (std::size_t number = 0; number < functions.size(); ++number) {
    CAPTURE(number);
    check(functions[number]);
    check_added(functions[number]);
  }
}

TEST_CASE("gradients of tensors put together go to each of them") {
  const std::vector<Tensor<double>> two{random({2, 3}, 1), random({2, 1}, 2)};
  expect_passed(check_gradients([](const Inputs& in) { return cat(in, 1); }, two));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        return cat({in[0], Variable<double>(random({2, 2}, 3)), in[1]}, -1);
      },
      two));
  expect_passed(check_gradients([](const Inputs& in) { return stack(in, 1); }, {random({2, 3}, 1), random({2, 3}, 2)}));
}

TEST_CASE("a gradient of bfloat16 that comes from many places is rounded once") {
  Tape tape;
  Tensor<bfloat16> gradient;
  const auto x = watch(Tensor<bfloat16>::full({1}, bfloat16(1.0f)), [&](const Tensor<bfloat16>& g) { gradient = g; });
  expand(x, {1000}).backward(bfloat16(1.0f));
  CHECK(static_cast<float>(gradient.data()[0]) == 1000);
}

TEST_CASE("variables of rows share their elements, and no gradient of nothing comes back") {
  Tape tape;
  Tensor<double> gradient;
  const auto x = watch(random({4, 2}, 1), [&](const Tensor<double>& g) { gradient = g; });
  const auto rows = narrow(x, 0, 1, 2);
  CHECK(rows.value().storage() == x.value().storage());
  CHECK(split(x, 2)[1].value().storage() == x.value().storage());
  CHECK(unsqueeze(x, 1).value().storage() == x.value().storage());
  sum(slice(x, 0, 4)).backward();
  CHECK(elements(gradient) == std::vector<double>(8, 0));
}

TEST_CASE("an observer is told what is moved") {
  Diary diary;
  const Observation observation(diary);
  const Variable<double> x = random({2, 3}, 1);
  roll(x, {1, -2}, {0, -1});
  narrow(x, 0, 1, 1);
  pad(x, {1, 2}, {.mode = PadMode::replicate});
  transpose(x, 0, -1);
  cat({x, x}, 1);
  using Numbers = std::vector<std::int64_t>;
  CHECK(diary.names(Pass::forward) == std::vector<std::string>{"roll", "narrow", "pad", "transpose", "cat"});
  CHECK(diary.entries[0].attributes == Attributes{{"shifts", Numbers{1, -2}}, {"dims", Numbers{0, -1}}});
  CHECK(diary.entries[1].attributes == Attributes{{"dim", Numbers{0}}, {"slice", Numbers{1, 2, 1}}});
  CHECK(diary.entries[2].attributes == Attributes{{"amounts", Numbers{1, 2}}, {"mode", Numbers{2}}});
  CHECK(diary.entries[4].attributes == Attributes{{"dim", std::int64_t{1}}});
}

TEST_CASE("what is like a variable is a constant") {
  const Variable<double> x = random({2, 3}, 1);
  CHECK(elements(zeros_like(x).value()) == std::vector<double>(6, 0));
  CHECK(elements(ones_like(x).value()) == std::vector<double>(6, 1));
  CHECK(elements(full_like(x, 3).value()) == std::vector<double>(6, 3));
  CHECK(full_like(x, 3).slot() == nullptr);
}

TEST_CASE("functions that move elements name what is undefined") {
  const Variable<double> none;
  const Variable<double> one = random({1, 1}, 1);
  CHECK_THROWS_WITH(permute(none, {0}), ContainsSubstring("permute: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(slice(none, 0, 1), ContainsSubstring("slice: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(narrow(none, 0, 0, 1), ContainsSubstring("narrow: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(split(none, 1), ContainsSubstring("split: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(triu(none), ContainsSubstring("triu: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(squeeze(none), ContainsSubstring("squeeze: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(select(none, 0, 0), ContainsSubstring("select: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(chunk<2>(none), ContainsSubstring("chunk: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(reshape(none, {-1, 2}), ContainsSubstring("reshape: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(matmul(Tensor<double>(), one), ContainsSubstring("matmul: operand 1 of 2 is undefined"));
  CHECK_THROWS_WITH(cat({one, none}), ContainsSubstring("cat: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(zeros_like(none), ContainsSubstring("full_like: operand 1 of 1 is undefined"));
  CHECK_THROWS_WITH(triu(squeeze(one)), "triu: x [] has no rows and columns");
}
