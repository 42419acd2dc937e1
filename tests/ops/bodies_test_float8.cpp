#include <limits>

#include "ops/matmul/float8_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/matmul/float8.hpp"

// The quantisation of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
Tensor<T> with_extremes(const Shape& shape) {
  auto x = random_tensor<T>(shape, 1, 3);
  x.span()[1] = T(std::numeric_limits<float>::infinity());
  x.span()[4] = T(std::numeric_limits<float>::quiet_NaN());
  x.span()[7] = T(-40.0F);
  x.span()[9] = T(1e9F);
  return x;
}

template <typename F>
void require_same_codes(const Tensor<F>& got, const Tensor<F>& expected) {
  REQUIRE(std::equal(got.data(), got.data() + got.numel(), expected.data(), [](F a, F b) { return a.bits() == b.bits(); }));
}

template <typename T, typename F>
void check_quantize(std::int64_t rows, std::int64_t columns, bool wants_codes, bool wants_transposed, int team_size) {
  CAPTURE(rows, columns, wants_codes, wants_transposed, team_size);
  const auto x = with_extremes<T>({rows, columns});
  const Tensor<float> scale = Tensor<float>::from({2}, std::vector<float>{16, 0x1p-4F});
  const auto results = [&] {
    return Quantized<F>{.codes = wants_codes ? Tensor<F>({rows, columns}) : Tensor<F>(),
                        .transposed = wants_transposed ? Tensor<F>({columns, rows}) : Tensor<F>(),
                        .scale = scale,
                        .amax = Tensor<float>({1})};
  };
  const Quantized<F> expected = results();
  quantize(x, expected);
  const Quantized<F> got = results();
  const std::int64_t tiles = quantize_tiles_along(rows) * quantize_tiles_along(columns);
  const Tensor<float> amaxes({tiles});
  const QuantizeTile<T, F> body{
      x.data(), rows, columns, scale.data(), got.codes.data(), got.transposed.data(), wants_codes ? amaxes.data() : nullptr};
  typename QuantizeTile<T, F>::Memory memory;
  device::run_host_team(team_size, [&](const device::HostTeam& team) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) body(team, tile, memory);
  });
  if (wants_codes) require_same_codes(got.codes, expected.codes);
  if (wants_codes) REQUIRE(*std::max_element(amaxes.data(), amaxes.data() + tiles) == expected.amax.item());
  if (wants_transposed) require_same_codes(got.transposed, expected.transposed);
}

template <typename F>
void check_scale(int team_size) {
  const auto amaxes = Tensor<float>::from({5}, std::vector<float>{0.5F, 0, 3, 1e-5F, 2});
  Tensor<float> expected({2});
  float8_scale<F>(amaxes, expected);
  const Tensor<float> got({2});
  device::run_host_team(team_size, [&](const device::HostTeam& team) {
    ScaleOfAmaxes<F>{{amaxes.data(), 2}, got.data(), {amaxes.data() + 2, 3}}(team);
  });
  require_identical(got, expected);
}

}  // namespace

TEMPLATE_TEST_CASE("amax by teams", "", float, bfloat16) {
  using T = TestType;
  for (const int team_size : {1, 3}) {
    for (const std::int64_t count : {13, 64, 203}) {
      const auto x = with_extremes<T>({count});
      Tensor<float> expected({1});
      amax(x, expected);
      constexpr std::int64_t parts = 2;
      const Tensor<float> of_parts({parts}), got({1});
      run_rows(team_size, parts, AmaxParts<4, T>{x.data(), count, parts, of_parts.data()});
      device::run_host_team(team_size, [&](const device::HostTeam& team) {
        LargestAmax{{of_parts.data(), parts}, got.data()}(team);
      });
      require_identical(got, expected);
      run_rows(team_size, parts, AmaxParts<1, T>{x.data(), count, parts, of_parts.data()});
      device::run_host_team(team_size, [&](const device::HostTeam& team) {
        LargestAmax{{of_parts.data(), parts}, got.data()}(team);
      });
      require_identical(got, expected);
    }
  }
}

TEST_CASE("a history spares teams the reading") {
  const auto x = with_extremes<float>({64});
  const Tensor<float> of_parts({2});
  for (const float known : {0.0F, 3.0F}) {
    const auto history = Tensor<float>::from({3}, std::vector<float>{0, known, 0});
    run_rows(3, 2, AmaxParts<4, float>{x.data(), 64, 2, of_parts.data(), {history.data(), 3}});
    REQUIRE((std::max(of_parts.data()[0], of_parts.data()[1]) == 0) == (known > 0));
  }
}

TEST_CASE("scales and histories by teams") {
  for (const int team_size : {1, 3}) {
    check_scale<float8_e4m3>(team_size);
    check_scale<float8_e5m2>(team_size);
    for (const std::int64_t length : {1, 3, 7}) {
      const auto expected = random_tensor<float>({length}, 1);
      const Tensor<float> got = expected.clone();
      const Tensor<float> amax = Tensor<float>::full({1}, 5);
      Tensor<float> history = expected;
      push_amax(amax, history);
      device::run_host_team(team_size, [&](const device::HostTeam& team) { PushAmax{amax.data(), got.data(), length}(team); });
      require_identical(got, expected);
    }
  }
}

TEMPLATE_TEST_CASE("quantisation by teams gives the same codes", "", float, bfloat16) {
  for (const int team_size : {1, 3}) {
    check_quantize<TestType, float8_e4m3>(16, 16, true, true, team_size);
    check_quantize<TestType, float8_e5m2>(80, 144, true, true, team_size);
    check_quantize<TestType, float8_e4m3>(64, 128, true, false, team_size);
    check_quantize<TestType, float8_e5m2>(64, 128, false, true, team_size);
  }
}
