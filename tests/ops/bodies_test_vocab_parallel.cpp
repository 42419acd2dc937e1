#include <algorithm>
#include <limits>
#include <vector>

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
    Tensor<A> exponentials({2, count});
    Tensor<A> target_logits({count});
    partial_cross_entropy(logits, targets, held, exponentials, target_logits);
    Tensor<T> dlogits(logits.shape());
    partial_cross_entropy_backward(logits, targets, held, exponentials, A(0.5), dlogits);
    const HeldClasses<T> rows{
        .logits = logits.data(), .targets = targets.data(), .rows = count, .held = held, .classes = classes};
    for (const int size : {1, 3}) {
      CAPTURE(classes, size);
      Tensor<A> sums({2, count});
      Tensor<A> of_targets({count});
      run_rows(size, count, PartialCrossEntropy<1, T>{rows, sums.data(), of_targets.data()});
      require_close(sums, as_doubles(exponentials), tolerance<A>(1e-6));
      require_identical(of_targets, target_logits);
      Tensor<T> gradient(logits.shape());
      run_rows(size, count, PartialCrossEntropyGradient<1, T>{rows, exponentials.data(), {A(0.5)}, gradient.data()});
      require_close(gradient, as_doubles(dlogits), rounding<T>(2e-6));
    }
  }
}

// Three ranks of 4, 4 and no classes; the logits of the second are -infinity where it is `masked`.
TEST_CASE("the ranks' parts of a cross-entropy are exact beside large logits, also where a rank has -infinity alone") {
  constexpr std::int64_t rows = 5;
  const auto run = [](float offset, bool masked, bool by_teams) {
    const std::int64_t classes[] = {4, 4, 0};
    const auto targets = Tensor<std::int32_t>::from({rows}, {0, 1, 2, 3, 0});
    Tensor<float> parts = Tensor<float>::zeros({7, rows}), exponentials({2, rows});
    std::vector<Tensor<float>> logits;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const VocabRange held{.first = 4 * rank, .total = 8};
      Tensor<float>& x = logits.emplace_back(Shape{rows, classes[rank]});
      for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = offset + static_cast<float>(i * i % 7 % 6);
      if (masked && rank == 1) std::fill_n(x.data(), x.numel(), -std::numeric_limits<float>::infinity());
      Tensor<float> own = parts.narrow(2 * rank, 2), of_targets({rows});
      if (by_teams) {
        const HeldClasses<float> of{
            .logits = x.data(), .targets = targets.data(), .rows = rows, .held = held, .classes = classes[rank]};
        run_rows(2, rows, PartialCrossEntropy<1, float>{of, own.data(), of_targets.data()});
      } else {
        partial_cross_entropy(x, targets, held, own, of_targets);
      }
      for (std::int64_t row = 0; row < rows; ++row) parts.at(6, row) += of_targets.at(row);
    }
    Doubles results{join_cross_entropy(parts, targets, exponentials).sum};
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const VocabRange held{.first = 4 * rank, .total = 8};
      Tensor<float> gradient({rows, 4});
      const HeldClasses<float> of{
          .logits = logits[rank].data(), .targets = targets.data(), .rows = rows, .held = held, .classes = 4};
      if (by_teams) {
        run_rows(2, rows, PartialCrossEntropyGradient<1, float>{of, exponentials.data(), {0.5F}, gradient.data()});
      } else {
        partial_cross_entropy_backward(logits[rank], targets, held, exponentials, 0.5F, gradient);
      }
      for (const float element : gradient.span()) results.push_back(element);
    }
    return results;
  };
  for (const bool by_teams : {false, true}) {
    for (const bool masked : {false, true}) {
      CAPTURE(by_teams, masked);
      CHECK(std::isfinite(run(0, masked, by_teams)[0]));
      CHECK((run(1e7F, masked, by_teams) == run(0, masked, by_teams)));
    }
  }
}

TEMPLATE_TEST_CASE("the ranks' parts of a cross-entropy, joined", "", float, double) {
  using T = TestType;
  constexpr std::int64_t count = 29;
  const auto parts = random_tensor<T>({7, count}, 1, 3);
  for (T& element : parts.span()) element = std::abs(element) + 1;  // sums are not below 1
  auto targets = random_index(count, 40, 2);
  targets.data()[7] = ignored_target;
  Tensor<T> expected({2, count});
  const auto result = join_cross_entropy(parts, targets, expected);
  const CrossEntropyParts<T> of{.parts = parts.data(), .targets = targets.data(), .ranks = 3, .rows = count};
  Tensor<T> exponentials({2, count});
  Tensor<double> losses({count});
  const JoinCrossEntropy<T> join{of, exponentials.data(), losses.data()};
  for (std::int64_t row = 0; row < count; ++row) join(row);
  require_close(exponentials, as_doubles(expected), tolerance<T>(1e-6));
  for (const int size : {1, 3}) {
    double sums[2] = {};
    device::run_host_team(size, [&](const device::HostTeam& team) {
      JoinedTotal{targets.data(), losses.data(), count, sums}(team);
    });
    CHECK(sums[0] == Approx(result.sum));
    CHECK(sums[1] == result.target_weight);
  }
}
