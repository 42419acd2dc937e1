#include <cmath>
#include <limits>

#include "gradient_check.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/operations/reduce.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

namespace {

RunningStatistics<double> fresh_statistics(std::int64_t channels) {
  return {.mean = Tensor<double>::zeros({channels}), .var = Tensor<double>::full({channels}, 1)};
}

// Rank 0 of two. The other rank has the last two of six rows, and adds their sums, squares and number.
class LastRows final : public Collectives {
 public:
  explicit LastRows(Tensor<double> x) : Collectives(0, 2), x_(std::move(x)) {}

 private:
  Pending start(const Call& call) const override {
    REQUIRE(call.kind == CallKind::all_reduce);
    REQUIRE(call.dtype == DType::float64);
    REQUIRE(call.count == 7);
    const std::span sums(static_cast<double*>(call.data), call.count);
    for (std::int64_t row = 4; row < 6; ++row) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const double element = x_.data()[row * 3 + static_cast<std::int64_t>(channel)];
        sums[channel] += element;
        sums[3 + channel] += element * element;
      }
    }
    sums[6] += 2;
    return {};
  }

  Tensor<double> x_;
};

}  // namespace

TEST_CASE("gradients of batch norm in training and evaluation, alone and fused") {
  for (const bool training : {true, false}) {
    CAPTURE(training);
    const BatchNormArguments options{.training = training};
    const RunningStatistics<double> running{.mean = random({3}, 8), .var = Tensor<double>::full({3}, 2)};
    const std::vector inputs{random({2, 3, 4, 3}, 1), random({3}, 2), random({3}, 3), random({2, 3, 4, 3}, 4)};
    expect_passed(check_gradients([&](const Inputs& in) { return batch_norm(in[0], in[1], in[2], running, options); }, inputs));
    expect_passed(check_gradients([&](const Inputs& in) { return batch_norm(in[0], {}, {}, running, options); }, inputs));
    expect_passed(
        check_gradients([&](const Inputs& in) { return batch_norm_relu(in[0], in[1], in[2], running, options); }, inputs));
    expect_passed(check_gradients(
        [&](const Inputs& in) { return batch_norm_add_relu(in[0], in[3], in[1], in[2], running, options); }, inputs));
    // The input is the residual too; a constant input still lets the residual have its gradient.
    expect_passed(check_gradients(
        [&](const Inputs& in) { return batch_norm_add_relu(in[0], in[0], in[1], in[2], running, options); }, inputs));
    expect_passed(check_gradients(
        [&](const Inputs& in) { return batch_norm_add_relu({inputs[0]}, in[3], in[1], in[2], running, options); },
        {inputs[1], inputs[1], inputs[2], inputs[3]}));
    // A constant residual; a constant weight, bias or both; neither; a constant input of the norm without a residual.
    const std::vector norm_inputs{inputs[0], inputs[1], inputs[2]};
    const Variable<double> x{inputs[0]}, weight{inputs[1]}, bias{inputs[2]}, residual{inputs[3]};
    const auto check = [&](const auto& function) { expect_passed(check_gradients(function, norm_inputs)); };
    check([&](const Inputs& in) { return batch_norm_add_relu(in[0], residual, in[1], in[2], running, options); });
    check([&](const Inputs& in) { return batch_norm_relu(in[0], weight, in[2], running, options); });
    check([&](const Inputs& in) { return batch_norm_relu(in[0], in[1], bias, running, options); });
    check([&](const Inputs& in) { return batch_norm_relu(in[0], weight, bias, running, options); });
    check([&](const Inputs& in) { return batch_norm_relu(in[0], {}, {}, running, options); });
    check([&](const Inputs& in) { return batch_norm_relu(x, in[1], in[2], running, options); });
  }
}

TEST_CASE("gradients of group norm") {
  for (const int groups : {1, 2, 6}) {
    CAPTURE(groups);
    expect_passed(check_gradients([&](const Inputs& in) { return group_norm(in[0], in[1], in[2], groups); },
                                  {random({2, 2, 3, 6}, 1), random({6}, 2), random({6}, 3)}));
    expect_passed(
        check_gradients([&](const Inputs& in) { return group_norm(in[0], {}, {}, groups); }, {random({2, 2, 3, 6}, 1)}));
    // Twice: the second contributions add. A constant input still lets weight and bias have their gradients.
    expect_passed(check_gradients(
        [&](const Inputs& in) {
          return add(group_norm(in[0], in[1], in[2], groups), group_norm(in[0], in[1], in[2], groups, 0.5));
        },
        {random({2, 2, 3, 6}, 1), random({6}, 2), random({6}, 3)}));
    expect_passed(check_gradients(
        [&](const Inputs& in) {
          return group_norm(Variable<double>(random({2, 2, 3, 6}, 1)), in[0], in[1], groups);
        },
        {random({6}, 2), random({6}, 3)}));
  }
}

TEST_CASE("group norm of samples without elements gives weight and bias gradients of 0") {
  Tensor<double> dweight, dbias;
  {
    Tape tape;
    const auto keep = [](Tensor<double>& to) { return [&to](const Tensor<double>& gradient) { to = gradient; }; };
    const auto weight = watch(random({4}, 1), keep(dweight)), bias = watch(random({4}, 2), keep(dbias));
    sum(group_norm(Variable<double>(Tensor<double>::zeros({2, 0, 4})), weight, bias, 2)).backward();
  }
  CHECK(dweight.to_vector() == std::vector<double>(4, 0));
  CHECK(dbias.to_vector() == std::vector<double>(4, 0));
}

TEST_CASE("running statistics follow the batch, evaluation uses them") {
  const Tensor<double> x = Tensor<double>::from({4, 1}, std::vector<double>{1, 3, 5, 7});  // mean 4, unbiased variance 20 / 3
  const auto running = fresh_statistics(1);
  batch_norm(Variable<double>(x), {}, {}, running, {.momentum = 0.25});
  CHECK(running.mean.item() == Approx(1));
  CHECK(running.var.item() == Approx(0.75 + 0.25 * 20 / 3));
  const auto y = batch_norm(Variable<double>(x), {}, {}, running, {.training = false, .epsilon = 0.5});
  CHECK(y.value().data()[3] == Approx((7 - 1) / std::sqrt(0.75 + 5.0 / 3 + 0.5)));
  CHECK(running.mean.item() == Approx(1));
}

TEMPLATE_TEST_CASE("an infinite activation makes its channel nan and leaves running statistics alone", "", float, double,
                   bfloat16, float16) {
  using A = Accumulate<TestType>;
  const auto x = random<TestType>({2, 2, 2, 4}, 1);
  x.data()[5] = static_cast<TestType>(std::numeric_limits<float>::infinity());
  const RunningStatistics<A> running{.mean = Tensor<A>::zeros({4}), .var = Tensor<A>::full({4}, 1)};
  const auto is_nan = [](const Tensor<TestType>& y, std::int64_t index) { return std::isnan(static_cast<A>(y.data()[index])); };
  const auto y = batch_norm(Variable<TestType>(x), {}, {}, running).value();
  for (std::int64_t index = 0; index < y.numel(); ++index) CHECK(is_nan(y, index) == (index % 4 == 1));
  for (std::int64_t channel = 0; channel < 4; ++channel) {
    CHECK(running.mean.data()[channel] == 0);
    CHECK(running.var.data()[channel] == 1);
  }
  const auto grouped = group_norm(Variable<TestType>(x), {}, {}, 2).value();
  for (std::int64_t index = 0; index < y.numel(); ++index) CHECK(is_nan(grouped, index) == (index < 16 && index % 4 < 2));
  if constexpr (std::is_same_v<TestType, float>) {  // squares that float does not hold
    for (float& element : x.span()) element = element < 0 ? -1e30F : 1e30F;
    batch_norm(Variable<TestType>(x), {}, {}, running);
    CHECK(running.var.data()[0] == 1);
  }
}

TEST_CASE("a sum over ranks makes shards of the rows one batch") {
  const Tensor<double> x = random({6, 3}, 1);
  const auto whole_statistics = fresh_statistics(3);
  const auto whole = batch_norm(Variable<double>(x), {}, {}, whole_statistics);
  const auto statistics = fresh_statistics(3);
  const auto part = batch_norm(Variable<double>(x.narrow(0, 4)), {}, {}, statistics, {.axis = std::make_shared<LastRows>(x)});
  for (std::int64_t index = 0; index < 12; ++index) {
    CHECK(part.value().data()[index] == Approx(whole.value().data()[index]));
  }
  CHECK(statistics.var.data()[2] == Approx(whole_statistics.var.data()[2]));
}

TEST_CASE("batch norm refuses a batch without variance and widths that do not fit") {
  const auto running = fresh_statistics(3);
  CHECK_THROWS_WITH(batch_norm(Variable<double>(random({1, 3}, 1)), {}, {}, running),
                    "batch_norm: training needs more than one value per channel, x [1, 3] makes 1 over all ranks");
  CHECK_NOTHROW(batch_norm(Variable<double>(random({1, 3}, 1)), {}, {}, running, {.training = false}));
  CHECK_THROWS_WITH(batch_norm_relu(Variable<double>(random({4, 2}, 1)), {}, {}, running),
                    "batch_norm_relu: the running mean has shape [3], but x [4, 2] has 2 channels");
  CHECK_THROWS_WITH(batch_norm(Variable<double>(random({4, 2}, 1)), {}, {}, {}, {.training = false}),
                    "batch_norm: evaluation needs running statistics");
}
