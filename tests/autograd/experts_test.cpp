#include "trireme/autograd/operations/experts.hpp"

#include "gradient_check.hpp"
#include "trireme/core/bfloat16.hpp"

// Functions that move rows of tokens to experts and back.
using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

// Five tokens that choose two of four experts each; no token chooses the third.
const std::vector<std::int64_t> chosen{3, 0, 0, 1, 0, 3, 1, 0, 0, 3};

ExpertRows rows_of(const ops::ExpertRowsOptions& options) {
  return std::make_shared<const ops::ExpertRows>(ops::expert_rows(Tensor<std::int64_t>::from({5, 2}, chosen), options));
}

Tensor<double> of_rows_of(const ops::ExpertRows& rows) { return random({rows.count(), 3}, 4); }

}  // namespace

TEST_CASE("rows are sorted by expert, and within one by token") {
  const ExpertRows rows = rows_of({.experts = 4});
  CHECK(rows->first == std::vector<std::int64_t>{0, 5, 7, 7, 10});
  CHECK(rows->choice == std::vector<std::int64_t>{1, 2, 4, 7, 8, 3, 6, 0, 5, 9});
  CHECK(rows->row == std::vector<std::int64_t>{7, 0, 1, 5, 2, 8, 6, 3, 4, 9});
}

TEST_CASE("a capacity takes first choices before second ones, and earlier tokens before later ones, in each group") {
  const ExpertRows rows = rows_of({.experts = 4, .capacity = 2, .tokens_of_group = 5});
  // Expert 0: the first choices of tokens 1 and 2. Expert 3: that of token 0, the second one of token 2.
  CHECK(rows->row == std::vector<std::int64_t>{4, -1, 0, 2, 1, 5, 3, -1, -1, -1});
  CHECK(rows->first == std::vector<std::int64_t>{0, 2, 4, 4, 6});
  const ExpertRows alone = rows_of({.experts = 4, .capacity = 1, .tokens_of_group = 1});
  CHECK(alone->count() == 10);
}

TEST_CASE("rows of experts that do not exist or of broken groups are refused") {
  CHECK_THROWS_WITH(rows_of({.experts = 3}), ContainsSubstring("expert 3 is chosen, but there are 3"));
  CHECK_THROWS_WITH(rows_of({.experts = 4, .capacity = 1, .tokens_of_group = 2}), ContainsSubstring("groups of 2 tokens"));
  const ExpertRows rows = rows_of({.experts = 4});
  CHECK_THROWS_WITH(take_expert_rows(Variable<double>(random({4, 3}, 1)), rows), ContainsSubstring("needs 5 rows"));
  CHECK_THROWS_WITH(expert_linear(Variable<double>(random({10, 3}, 1)), Variable<double>(random({6, 3}, 1)), rows),
                    ContainsSubstring("equally many rows for each of 4 experts"));
  CHECK_THROWS_WITH(expert_linear(Variable<double>(random({10, 3}, 1)), Variable<double>(random({8, 4}, 1)), rows),
                    ContainsSubstring("does not fit"));
}

TEST_CASE("gradients of rows of experts") {
  const auto x = random({5, 3}, 1), weight = random({8, 3}, 2), weights = random({5, 2}, 3);
  for (const auto& rows : {rows_of({.experts = 4}), rows_of({.experts = 4, .capacity = 2, .tokens_of_group = 5})}) {
    const Variable<double> constant(of_rows_of(*rows)), constant_weights(weights);
    const auto of_rows = of_rows_of(*rows);
    expect_passed(check_gradients([&](const Inputs& in) { return take_expert_rows(in[0], rows); }, {x}));
    expect_passed(check_gradients(
        [&](const Inputs& in) { return add(in[0], scale(combine_expert_rows(take_expert_rows(in[0], rows), in[1], rows), 2)); },
        {x, weights}));
    expect_passed(check_gradients([&](const Inputs& in) { return expert_linear(in[0], in[1], rows); }, {of_rows, weight}));
    expect_passed(check_gradients(
        [&](const Inputs& in) { return add(expert_linear(in[0], in[1], rows), expert_linear(constant, in[1], rows)); },
        {of_rows, weight}));
    expect_passed(
        check_gradients([&](const Inputs& in) { return combine_expert_rows(in[0], in[1], rows); }, {of_rows, weights}));
    expect_passed(check_gradients([&](const Inputs& in) { return combine_expert_rows(constant, in[0], rows); }, {weights}));
    expect_passed(
        check_gradients([&](const Inputs& in) { return combine_expert_rows(in[0], constant_weights, rows); }, {of_rows}));
  }
}

TEST_CASE("half types are added up as floats and rounded once") {
  const ExpertRows rows =
      std::make_shared<const ops::ExpertRows>(ops::expert_rows(Tensor<std::int64_t>::from({1, 3}, {0, 1, 2}), {.experts = 3}));
  const auto x = Tensor<bfloat16>::from({3, 1}, std::vector{bfloat16(256.F), bfloat16(1.F), bfloat16(1.F)});
  const auto ones = Tensor<float>::full({1, 3}, 1);
  CHECK(static_cast<float>(combine_expert_rows(Variable<bfloat16>(x), Variable<float>(ones), rows).value().item()) == 258);
}
