#include <limits>

#include "ops/norm/batch_norm_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/norm/batch_norm.hpp"

// The batch norm of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// By teams, a part of the rows after the other; then over the parts.
template <int Width, typename Terms>
Tensor<double> sums_by_teams(const Terms& terms, std::int64_t rows, std::int64_t channels, std::int64_t parts, int team_size) {
  const Tensor<double> of_parts({parts, 2 * channels});
  using Body = SumChannelParts<Width, Terms>;
  const Body body{terms, rows, channels, parts, of_parts.data()};
  Doubles scratch(static_cast<std::size_t>(Body::scratch_of_thread * team_size));
  run_rows(team_size, parts, [&](const device::HostTeam& team, std::int64_t part) { body(team, part, scratch.data()); });
  auto sums = Tensor<double>::zeros({2 * channels});
  for (std::int64_t i = 0; i < of_parts.numel(); ++i) sums.data()[i % (2 * channels)] += of_parts.data()[i];
  return sums;
}

template <int Width, Counts counts, typename T>
void check_backward(const BatchNormBackward<T, Cpu>& pass, bool residual, const ChannelStrands& strands, int team_size) {
  using A = Accumulate<T>;
  const auto rows = static_cast<double>(strands.rows);
  const auto tensor_of_residual = [&] { return residual ? Tensor<T>::zeros(pass.x.shape()) : Tensor<T>(); };
  const auto expected_dresidual = tensor_of_residual(), dresidual = tensor_of_residual();
  Tensor<double> sums({2 * strands.channels});
  batch_norm_backward_sums(pass, sums, expected_dresidual);
  const BatchNormGradients<T> of{.norm = {pass.mean.data(), pass.rstd.data(), pass.weight.data(), pass.bias.data()},
                                 .x = pass.x.data(),
                                 .counts = counts,
                                 .y = pass.y.data(),
                                 .dy = pass.dy.data()};
  const ChannelGradientMoments<Width, counts, T> moments{{of, dresidual.data()}};
  require_close(sums_by_teams<Width>(moments, strands.rows, strands.channels, 4, team_size), as_doubles(sums),
                tolerance<A>(1e-5));
  if (residual) require_identical(dresidual, expected_dresidual);
  for (const bool accumulate : {false, true}) {
    for (const auto& averaged : {sums, Tensor<double>()}) {
      auto expected_dx = random_tensor<T>(pass.x.shape(), 6);
      const Tensor<T> dx = expected_dx.clone();
      batch_norm_backward(pass, averaged, rows, expected_dx, accumulate);
      const ChannelGradient<Width, counts, T> gradient{
          strands, {.of = of, .sums = averaged.data(), .rows = rows, .dx = dx.data(), .accumulate_dx = accumulate}};
      for (std::int64_t i = 0; i < strands.strands * strands.channels / Width; ++i) gradient(i);
      require_close(dx, as_doubles(expected_dx), rounding<T>(1e-5));
    }
  }
}

struct Case {
  std::int64_t rows;
  std::int64_t channels;
  bool weighted;
  bool residual;
};

template <int Width, Counts counts, typename T>
void check(const Case& with, int team_size) {
  using A = Accumulate<T>;
  CAPTURE(Width, counts, with.rows, with.channels, with.weighted, with.residual, team_size);
  constexpr bool relu = counts != Counts::everywhere;
  const Shape shape{with.rows, with.channels};
  const Shape of_channels{with.channels};
  const auto x = random_tensor<T>(shape, 1, 2);
  const auto vector = [&](std::uint32_t seed) { return with.weighted ? random_tensor<A>(of_channels, seed) : Tensor<A>(); };
  const auto weight = vector(2), bias = vector(3);
  const auto residual = with.residual ? random_tensor<T>(shape, 4) : Tensor<T>();
  Tensor<double> sums({2 * with.channels});
  batch_norm_sums(x, sums);
  for (const std::int64_t parts : {1, 4}) {
    require_close(sums_by_teams<Width>(ChannelMoments<Width, T>{x.data()}, with.rows, with.channels, parts, team_size),
                  as_doubles(sums), 1e-12);
  }

  const Tensor<double> mean(of_channels), rstd(of_channels);
  const auto rows = static_cast<double>(with.rows);
  batch_norm_statistics<A, Cpu>({.sums = sums, .rows = rows, .mean = mean, .rstd = rstd});
  const Tensor<T> expected_y(shape), y(shape);
  batch_norm<T, Cpu>({.x = x,
                      .mean = mean,
                      .rstd = rstd,
                      .weight = weight,
                      .bias = bias,
                      .residual = residual,
                      .relu = relu,
                      .y = expected_y});
  const ChannelStrands strands{.rows = with.rows, .channels = with.channels, .strands = 3};
  const ChannelNormalization<T> norm{mean.data(), rstd.data(), weight.data(), bias.data()};
  const NormalizeChannels<Width, T> normalize{strands, {norm, x.data(), residual.data(), relu, y.data()}};
  const std::int64_t threads = strands.strands * with.channels / Width;
  for (std::int64_t i = 0; i < threads; ++i) normalize(i);
  require_close(y, as_doubles(expected_y), rounding<T>(1e-6));

  check_backward<Width, counts, T>({.x = x,
                                    .mean = mean,
                                    .rstd = rstd,
                                    .weight = weight,
                                    .bias = bias,
                                    .relu = relu,
                                    .y = counts == Counts::where_y ? expected_y : Tensor<T>(),
                                    .dy = random_tensor<T>(shape, 5)},
                                   with.residual, strands, team_size);
}

}  // namespace

TEMPLATE_TEST_CASE("batch norm by teams", "", float, double, bfloat16, float16) {
  constexpr int pack = 16 / sizeof(TestType);
  for (const int team_size : {1, 3}) {
    using enum Counts;
    check<pack, where_y, TestType>({.rows = 50, .channels = 8, .weighted = true, .residual = true}, team_size);
    check<pack, where_x, TestType>({.rows = 50, .channels = 8, .weighted = true, .residual = false}, team_size);
    check<pack, everywhere, TestType>({.rows = 7, .channels = 40, .weighted = false, .residual = false}, team_size);
    check<1, where_x, TestType>({.rows = 33, .channels = 5, .weighted = true, .residual = false}, team_size);
    check<1, where_x, TestType>({.rows = 33, .channels = 5, .weighted = false, .residual = false}, team_size);
    check<1, everywhere, TestType>({.rows = 20, .channels = 1, .weighted = true, .residual = true}, team_size);
  }
}

TEMPLATE_TEST_CASE("statistics of a batch by teams", "", float, double) {
  using A = TestType;
  for (const int team_size : {1, 3}) {
    for (const bool finite : {true, false}) {
      CAPTURE(team_size, finite);
      const auto sums = random_tensor<double>({14}, 1);
      for (std::int64_t i = 7; i < 14; ++i) sums.data()[i] = 30 + sums.data()[i];
      if (!finite) sums.data()[2] = std::numeric_limits<double>::infinity();
      const auto start = random_tensor<A>({7}, 2);
      const auto pass = [&] {
        return BatchNormStatistics<A, Cpu>{.sums = sums,
                                           .rows = 20,
                                           .running_mean = start.clone(),
                                           .running_var = start.clone(),
                                           .mean = Tensor<double>({7}),
                                           .rstd = Tensor<double>({7})};
      };
      const auto expected = pass(), got = pass();
      batch_norm_statistics(expected);
      const BatchStatistics<A> body{sums.data(),
                                    7,
                                    got.rows,
                                    got.epsilon,
                                    got.momentum,
                                    got.running_mean.data(),
                                    got.running_var.data(),
                                    got.mean.data(),
                                    got.rstd.data()};
      device::run_host_team(team_size, body);
      require_identical(got.running_mean, expected.running_mean);
      require_identical(got.running_var, expected.running_var);
      CHECK((got.running_mean.data()[0] == start.data()[0]) == !finite);
      if (finite) require_identical(got.rstd, expected.rstd);
    }
  }
}
