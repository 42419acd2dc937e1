#include "ops/norm/group_norm_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/norm/group_norm.hpp"

// The group norm of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
void check(const GroupNormSizes& sizes, bool weighted, int team_size) {
  using A = Accumulate<T>;
  CAPTURE(sizes.rows, sizes.channels, sizes.groups, weighted, team_size);
  const Shape shape{sizes.batch, sizes.rows, sizes.channels};
  const Shape of_groups{sizes.batch, sizes.groups};
  const int groups = static_cast<int>(sizes.groups);
  const auto vector = [&](std::uint32_t seed) { return weighted ? random_tensor<A>({sizes.channels}, seed) : Tensor<A>(); };
  const GroupNormForward<T, Cpu> expected{.x = random_tensor<T>(shape, 1, 2),
                                          .groups = groups,
                                          .weight = vector(2),
                                          .bias = vector(3),
                                          .y = Tensor<T>(shape),
                                          .mean = Tensor<double>(of_groups),
                                          .rstd = Tensor<double>(of_groups)};
  group_norm(expected);
  const GroupNormInput<T> in{sizes, expected.x.data(), expected.weight.data(), expected.bias.data()};
  const Tensor<T> y(shape);
  const Tensor<double> mean(of_groups), rstd(of_groups);
  run_rows(team_size, of_groups.numel(), NormalizeGroup<T>{in, expected.epsilon, y.data(), mean.data(), rstd.data()});
  require_close(y, as_doubles(expected.y), rounding<T>(1e-5));
  require_close(mean, as_doubles(expected.mean), 1e-9);
  require_close(rstd, as_doubles(expected.rstd), 1e-9);

  for (const bool accumulate : {false, true}) {
    const GroupNormBackward<T, Cpu> back{.x = expected.x,
                                         .groups = groups,
                                         .weight = expected.weight,
                                         .mean = mean,
                                         .rstd = rstd,
                                         .dy = random_tensor<T>(shape, 4),
                                         .dx = random_tensor<T>(shape, 5),
                                         .accumulate_dx = accumulate,
                                         .dweight = Tensor<A>({sizes.channels}),
                                         .dbias = Tensor<A>({sizes.channels})};
    const Tensor<T> dx = back.dx.clone();
    group_norm_backward(back);
    run_rows(team_size, of_groups.numel(),
             GroupNormGradient<T>{in, mean.data(), rstd.data(), back.dy.data(), dx.data(), accumulate});
    require_close(dx, as_doubles(back.dx), rounding<T>(1e-5));
    const Tensor<A> dweight({sizes.channels}), dbias({sizes.channels});
    const GroupNormWeightGradient<T> of_all{in, mean.data(), rstd.data(), back.dy.data(), 1, dweight.data(), dbias.data()};
    for (std::int64_t i = 0; i < sizes.channels; ++i) of_all(i);
    require_close(dweight, as_doubles(back.dweight), tolerance<A>(1e-5));
    require_close(dbias, as_doubles(back.dbias), tolerance<A>(1e-5));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("group norm by teams", "", float, double, bfloat16, float16) {
  for (const int team_size : {1, 3}) {
    check<TestType>({.batch = 3, .rows = 10, .channels = 12, .groups = 4}, true, team_size);
    check<TestType>({.batch = 1, .rows = 7, .channels = 5, .groups = 1}, false, team_size);
    check<TestType>({.batch = 2, .rows = 0, .channels = 4, .groups = 2}, true, team_size);
  }
}
