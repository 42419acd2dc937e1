#include "ops/norm/norm_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/norm/norm.hpp"

// The norms of a GPU, run by teams of the host's threads, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  std::int64_t rows;
  std::int64_t width;
  bool residual;
  bool weight;
  int team_size;
};

template <int Width, bool centers, typename T, typename Row>
void check_row(const NormForward<T, Cpu>& got, const NormForward<T, Cpu>& expected, const Case& sizes) {
  using A = Accumulate<T>;
  const NormForwardPointers<T> pointers{.x = got.x.data(),
                                        .residual = got.residual.data(),
                                        .weight = got.weight.data(),
                                        .bias = got.bias.data(),
                                        .epsilon = static_cast<A>(got.epsilon),
                                        .x_sum = got.x_sum.data(),
                                        .y = got.y.data(),
                                        .mean = got.mean.data(),
                                        .rstd = got.rstd.data(),
                                        .width = sizes.width};
  run_rows(sizes.team_size, sizes.rows, NormalizeRow<Width, centers, T, Row>{pointers});
  require_close(got.y, as_doubles(expected.y), rounding<T>(1e-5));
  require_close(got.rstd, as_doubles(expected.rstd), tolerance<A>(1e-5));
  if (centers) require_close(got.mean, as_doubles(expected.mean), tolerance<A>(1e-5));
  if (sizes.residual) require_identical(got.x_sum, expected.x_sum);
}

template <int Width, bool centers, typename T>
void check_forward(const Case& sizes) {
  using A = Accumulate<T>;
  const Shape shape{sizes.rows, sizes.width};
  const auto vector = [&](std::uint32_t seed) { return sizes.weight ? random_tensor<A>({sizes.width}, seed) : Tensor<A>(); };
  const auto outputs = [&](NormForward<T, Cpu> pass) {
    pass.x_sum = Tensor<A>(shape);
    pass.y = Tensor<T>(shape);
    if (centers) pass.mean = Tensor<A>({sizes.rows});
    pass.rstd = Tensor<A>({sizes.rows});
    return pass;
  };
  const NormForward<T, Cpu> inputs{.x = random_tensor<A>(shape, 1, 2),
                                   .residual = sizes.residual ? random_tensor<T>(shape, 2) : Tensor<T>(),
                                   .weight = vector(3),
                                   .bias = centers ? vector(4) : Tensor<A>()};
  const auto expected = outputs(inputs);
  centers ? layer_norm(expected) : rms_norm(expected);
  check_row<Width, centers, T, RowInMemory<Width, T>>(outputs(inputs), expected, sizes);
  constexpr int packs = 64 / Width;  // a row of one thread
  check_row<Width, centers, T, RowInRegisters<Width, packs, T>>(outputs(inputs), expected, sizes);
}

template <int Width, bool centers, typename T>
void check_backward(const Case& sizes, bool accumulate) {
  using A = Accumulate<T>;
  const Shape shape{sizes.rows, sizes.width};
  const auto x = random_tensor<A>(shape, 1, 2);
  const auto mean = centers ? random_tensor<A>({sizes.rows}, 2) : Tensor<A>();
  const auto rstd = random_tensor<A>({sizes.rows}, 3);
  const auto weight = sizes.weight ? random_tensor<A>({sizes.width}, 4) : Tensor<A>();
  const auto dy = random_tensor<T>(shape, 5);
  const auto expected_dx = random_tensor<A>(shape, 6);
  const auto old_dx = expected_dx.clone();
  const Tensor<T> expected_dresidual(shape);
  const Tensor<A> expected_dweight({sizes.width});
  const Tensor<A> expected_dbias = centers ? Tensor<A>({sizes.width}) : Tensor<A>();
  const NormBackward<T, Cpu> pass{.x = x,
                                  .weight = weight,
                                  .mean = mean,
                                  .rstd = rstd,
                                  .dy = dy,
                                  .dx = expected_dx,
                                  .accumulate_dx = accumulate,
                                  .dresidual = expected_dresidual,
                                  .dweight = expected_dweight,
                                  .dbias = expected_dbias};
  centers ? layer_norm_backward(pass) : rms_norm_backward(pass);

  const auto check_body = [&](auto make, int team_size) {
    const auto dx = old_dx.clone();
    const Tensor<T> dresidual(shape);
    const Tensor<A> dweight({sizes.width}), dbias({sizes.width});
    const auto body = make(NormBackwardPointers<T>{.x = x.data(),
                                                   .weight = weight.data(),
                                                   .mean = mean.data(),
                                                   .rstd = rstd.data(),
                                                   .dy = dy.data(),
                                                   .dx = dx.data(),
                                                   .accumulate_dx = accumulate,
                                                   .dresidual = dresidual.data(),
                                                   .width = sizes.width});
    device::run_host_team(team_size, [&](const device::HostTeam& team) {
      body(team, 0, sizes.rows, dweight.data(), centers ? dbias.data() : nullptr);
    });
    require_close(dx, as_doubles(expected_dx), 10 * tolerance<A>(1e-5));
    require_close(dresidual, as_doubles(expected_dresidual), rounding<T>(1e-5));
    require_close(dweight, as_doubles(expected_dweight), 10 * tolerance<A>(1e-5));
    if (centers) require_close(dbias, as_doubles(expected_dbias), tolerance<A>(1e-5));
  };
  check_body([](const auto& pointers) { return NormGradientOfRows<Width, centers, T>{pointers}; }, sizes.team_size);
  // A thread for each pack, and threads beside the row.
  check_body([](const auto& pointers) { return NormGradientInRegisters<Width, centers, T>{pointers}; },
             static_cast<int>(sizes.width) / Width + sizes.team_size - 1);
}

template <int Width, typename T>
void check(const Case& sizes) {
  CAPTURE(Width, sizes.width, sizes.residual, sizes.weight, sizes.team_size);
  check_forward<Width, true, T>(sizes);
  check_forward<Width, false, T>(sizes);
  for (const bool accumulate : {false, true}) {
    check_backward<Width, true, T>(sizes, accumulate);
    check_backward<Width, false, T>(sizes, accumulate);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("norms by teams", "", float, double, bfloat16, float16) {
  for (const int team_size : {1, 3}) {
    for (const bool all : {false, true}) {
      check<8, TestType>({.rows = 5, .width = 64, .residual = all, .weight = all, .team_size = team_size});
      check<1, TestType>({.rows = 2, .width = 7, .residual = all, .weight = !all, .team_size = team_size});
    }
  }
}
