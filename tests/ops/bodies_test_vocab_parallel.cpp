#include "ops/embedding/embedding_body.hpp"
#include "ops/loss/vocab_parallel_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/loss/vocab_parallel.hpp"

// The operations on a part of a vocabulary as a GPU computes them, run by teams of the host's threads, against the CPU's.
using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("rows of a part of the vocabulary", "", float, double) {
  using T = TestType;
  const VocabRange held{.first = 5, .total = 20};
  const auto weight = random_tensor<T>({8, 12}, 1);
  auto index = random_index(50, held.total, 2);
  Tensor<T> expected({50, 12});
  embedding_part(index, weight, held, expected);
  const HeldRows rows{.index = index.data(), .places = 50, .held = held, .count = 8, .width = 12};
  const auto gather = [&]<int Width>(std::integral_constant<int, Width>) {
    Tensor<T> y(expected.shape());
    const GatherHeldRows<Width, T> body{rows, weight.data(), y.data()};
    for (std::int64_t i = 0; i < 50 * 12 / Width; ++i) body(i);
    return y;
  };
  require_identical(gather(std::integral_constant<int, 1>{}), expected);
  require_identical(gather(std::integral_constant<int, 4>{}), expected);
  index.data()[3] = 20;
  CHECK(std::isnan(gather(std::integral_constant<int, 1>{}).narrow(3, 1).data()[0]));
}

TEMPLATE_TEST_CASE("cross-entropy of a part of the classes, by teams", "", float, double, bfloat16, float16) {
  using T = TestType;
  using A = Accumulate<T>;
  constexpr std::int64_t count = 13;
  const VocabRange held{.first = 8, .total = 40};
  for (const std::int64_t classes : {7, 16}) {
    const auto logits = random_tensor<T>({count, classes}, 1, 5);
    auto targets = random_index(count, held.total, 3);
    targets.data()[4] = ignored_target;
    Tensor<A> log_sum_exp({count});
    Tensor<A> target_logits({count});
    partial_cross_entropy(logits, targets, held, log_sum_exp, target_logits);
    Tensor<T> dlogits(logits.shape());
    partial_cross_entropy_backward(logits, targets, held, log_sum_exp, A(0.5), dlogits);
    const HeldClasses<T> rows{
        .logits = logits.data(), .targets = targets.data(), .rows = count, .held = held, .classes = classes};
    for (const int size : {1, 3}) {
      CAPTURE(classes, size);
      Tensor<A> sums({count});
      Tensor<A> of_targets({count});
      run_rows(size, count, PartialCrossEntropy<1, T>{rows, sums.data(), of_targets.data()});
      require_close(sums, as_doubles(log_sum_exp), tolerance<A>(1e-6));
      require_identical(of_targets, target_logits);
      Tensor<T> gradient(logits.shape());
      run_rows(size, count, PartialCrossEntropyGradient<1, T>{rows, log_sum_exp.data(), {A(0.5)}, gradient.data()});
      require_close(gradient, as_doubles(dlogits), rounding<T>(2e-6));
    }
  }
}

TEMPLATE_TEST_CASE("the ranks' parts of a cross-entropy, joined", "", float, double) {
  using T = TestType;
  constexpr std::int64_t count = 29;
  const auto parts = random_tensor<T>({4, count}, 1, 3);
  auto targets = random_index(count, 40, 2);
  targets.data()[7] = ignored_target;
  Tensor<T> expected({count});
  const auto result = join_cross_entropy(parts, targets, expected);
  const CrossEntropyParts<T> of{.parts = parts.data(), .targets = targets.data(), .ranks = 3, .rows = count};
  Tensor<T> log_sum_exp({count});
  Tensor<double> losses({count});
  const JoinCrossEntropy<T> join{of, log_sum_exp.data(), losses.data()};
  for (std::int64_t row = 0; row < count; ++row) join(row);
  require_close(log_sum_exp, as_doubles(expected), tolerance<T>(1e-6));
  for (const int size : {1, 3}) {
    double sums[2] = {};
    device::run_host_team(size, [&](const device::HostTeam& team) {
      JoinedTotal{targets.data(), losses.data(), count, sums}(team);
    });
    CHECK(sums[0] == Approx(result.sum));
    CHECK(sums[1] == result.target_weight);
  }
}
