#include "ops/bodies/reduce.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/reduce.hpp"

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

template <typename Value, typename T>
double sum_by_teams(const Tensor<T>& x, std::int64_t parts, int size) {
  const Tensor<double> sums({parts});
  double total = 0;
  device::run_host_team(size, [&](const device::HostTeam& team) {
    for (std::int64_t part = 0; part < parts; ++part)
      SumParts<4, T, Value>{x.data(), x.numel(), parts, sums.data()}(team, part);
    team.wait();
    Total{sums.data(), parts, &total}(team);
  });
  return total;
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

TEMPLATE_TEST_CASE("sums of elements and of squares by teams", "", float, double, bfloat16, float16) {
  for (const int size : {1, 3}) {
    for (const std::int64_t count : {0, 1, 3, 4, 1000, 4099}) {
      CAPTURE(size, count);
      const auto x = random_tensor<TestType>({count}, 1);
      CHECK(sum_by_teams<Itself>(x, 5, size) == Approx(sum(x)).epsilon(1e-12).margin(1e-12));
      double squares = 0;
      for (const double value : as_doubles(x)) squares += value * value;
      CHECK(sum_by_teams<Square>(x, 5, size) == Approx(squares).epsilon(1e-12));
    }
  }
}
