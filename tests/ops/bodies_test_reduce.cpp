#include <numeric>

#include "ops/loss/elementwise_loss_body.hpp"
#include "ops/reduce/reduce_body.hpp"
#include "ops/team_compare.hpp"
#include "ops/update/lamb_body.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/update/optimizer.hpp"

// The sums of a GPU, run by teams of the host's threads, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <int Width, typename T>
void check_sum_rows(std::int64_t rows, std::int64_t width, int size) {
  using A = Accumulate<T>;
  CAPTURE(Width, rows, width, size);
  const auto x = random_tensor<T>({rows, width}, 1);
  Tensor<A> expected = random_tensor<A>({width}, 2);
  const Tensor<A> columns = expected.clone();
  sum_rows(x, expected, true);
  const std::int64_t parts = 3;
  const Tensor<A> sums({parts, width});
  const SumRowParts<Width, T> of_parts{{x.data(), width}, rows, parts, sums.data()};
  for (std::int64_t i = 0; i < parts * width / Width; ++i) of_parts(i);
  run_rows(size, width / Width, SumRows<Width, A>{{sums.data(), width}, parts, columns.data(), true});
  require_close(columns, as_doubles(expected), tolerance<A>(1e-5));
  run_rows(size, width / Width, SumRows<Width, T>{{x.data(), width}, rows, columns.data(), false});
  sum_rows(x, expected, false);
  require_close(columns, as_doubles(expected), tolerance<A>(1e-5));
}

template <typename T>
double squares_by_teams(const Tensor<T>& x, std::int64_t parts, int size) {
  const Tensor<double> sums({parts});
  double total = 0;
  device::run_host_team(size, [&](const device::HostTeam& team) {
    for (std::int64_t part = 0; part < parts; ++part) SumSquares<4, T>{x.data(), x.numel(), parts, sums.data()}(team, part);
    team.wait();
    Total{sums.data(), parts, &total}(team);
    team.wait();
    Total{sums.data(), parts, &total, true}(team);
  });
  return total / 2;
}

}  // namespace

TEMPLATE_TEST_CASE("sums of rows by teams", "", float, double, bfloat16, float16) {
  for (const int size : {1, 3}) {
    for (const std::int64_t rows : {0, 1, 2, 41}) {
      check_sum_rows<8, TestType>(rows, 24, size);
      check_sum_rows<1, TestType>(rows, 7, size);
    }
  }
}

TEMPLATE_TEST_CASE("sums of squares by teams", "", float, double, bfloat16, float16) {
  for (const int size : {1, 3}) {
    for (const std::int64_t count : {0, 1, 3, 4, 1000, 4099}) {
      CAPTURE(size, count);
      const auto x = random_tensor<TestType>({count}, 1);
      double squares = 0;
      for (const double value : as_doubles(x)) squares += value * value;
      CHECK(squares_by_teams(x, 5, size) == Approx(squares).epsilon(1e-12));
    }
  }
}

TEMPLATE_TEST_CASE("losses of elements by teams", "", float, double, bfloat16, float16) {
  using T = TestType;
  using A = Accumulate<T>;
  constexpr std::int64_t count = 1001;
  const auto x = random_tensor<T>({count}, 1);
  auto target = random_tensor<A>({count}, 2);
  for (A& element : target.span()) element = element * element / (1 + element * element);
  const ElementwiseLossOptions options{.positive_weight = 2, .delta = 0.5, .alpha = 0.3, .gamma = 1.5};
  for (const auto kind : {ElementwiseLoss::squared_error, ElementwiseLoss::binary_cross_entropy, ElementwiseLoss::kl_divergence,
                          ElementwiseLoss::kl_divergence_log_target, ElementwiseLoss::absolute_error, ElementwiseLoss::huber,
                          ElementwiseLoss::smooth_l1, ElementwiseLoss::focal}) {
    const auto of = loss_of<A>("test", kind, options);
    for (const int size : {1, 3}) {
      CAPTURE(static_cast<int>(kind), size);
      Tensor<double> sums({5});
      with_loss(of, [&](auto loss) {
        run_rows(size, 5, SumLosses<T, decltype(loss)>{loss, x.data(), target.data(), count, 5, sums.data()});
      });
      double total = 0;
      for (const double part : sums.span()) total += part;
      CHECK(total == Approx(elementwise_loss(kind, x, target, options)).epsilon(tolerance<A>(1e-6)));
    }
    Tensor<T> dx({count});
    elementwise_loss_backward(kind, x, target, A(0.5), dx, false, options);
    with_loss(of, [&](auto loss) {
      const LossGradient<A, decltype(loss)> map{loss, {A(0.5)}};
      Doubles gradients;
      for (std::int64_t i = 0; i < count; ++i) gradients.push_back(static_cast<double>(map(i, x.data()[i], target.data()[i])));
      require_close(dx, gradients, rounding<T>(1e-6));
    });
  }
}

TEMPLATE_TEST_CASE("the first pass of LAMB by teams", "", float, double) {
  using T = TestType;
  constexpr std::size_t count = 1001;
  const LambStep step{.weight_decay = 0.1, .update = 3};
  const auto weight = random_tensor<T>({count}, 1);
  const auto gradient = random_tensor<T>({count}, 2);
  const auto first = random_tensor<T>({count}, 3);
  auto second = random_tensor<T>({count}, 4);
  for (T& element : second.span()) element = element * element;
  const auto expected_first = first.clone();
  const auto expected_second = second.clone();
  UpdateSquares expected;
  lamb_moments(weight.data(), gradient.data(), expected_first.data(), expected_second.data(), count, step, &expected);
  for (const int size : {1, 3}) {
    CAPTURE(size);
    const auto m = first.clone();
    const auto v = second.clone();
    Tensor<double> sums({2, 4});
    const LambMoments<T> body{weight.data(), gradient.data(), m.data(), v.data(), static_cast<std::int64_t>(count), 4,
                              sums.data(),   sums.data() + 4};
    const auto run = [&](bool skipped) {
      run_rows(size, 4, [&](const auto& team, std::int64_t part) { body(LambUpdate<T>(step), skipped, team, part); });
    };
    run(false);
    const auto total = [&](std::int64_t row) {
      const Tensor<double> parts = sums.narrow(row, 1);
      return std::accumulate(parts.data(), parts.data() + 4, 0.0);
    };
    CHECK(total(0) == Approx(expected.weight).epsilon(1e-9));
    CHECK(total(1) == Approx(expected.update).epsilon(tolerance<T>(1e-6)));
    require_close(m, as_doubles(expected_first), tolerance<T>(1e-6));
    require_close(v, as_doubles(expected_second), tolerance<T>(1e-6));
    const auto before = m.clone();
    run(true);
    CHECK(total(0) + total(1) == 0);
    require_identical(m, before);
  }
}
