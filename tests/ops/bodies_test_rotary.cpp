#include "ops/elementwise/rotary_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/elementwise/rotary.hpp"

// The rotary positions of a GPU, run by teams of the host's threads, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <int Width, typename T>
void check(const RotaryOptions& options, std::int64_t width, double direction, int team_size,
           const Tensor<std::int32_t>& starts = {}) {
  using A = Accumulate<T>;
  CAPTURE(Width, options.size, width, direction, team_size);
  constexpr std::int64_t batch = 2;
  constexpr std::int64_t time = 5;
  const auto x = random_tensor<T>({batch, time, width}, 1);
  Tensor<T> expected(x.shape());
  direction > 0 ? rotary(x, options, expected, starts) : rotary_backward(x, options, expected, starts);

  const std::int64_t half = options.size / 2;
  const Tensor<A> cosines({time, half}), sines({time, half});
  const RotaryAngles<A> angles{half,           options.first_position, options.base,   direction,
                               cosines.data(), sines.data(),           options.scaling};
  for (std::int64_t i = 0; i < time * half; ++i) angles(i);
  const auto run = [&](const T* from, T* to) {
    const RotaryRows<T> rows{
        cosines.data(), sines.data(), half, options.heads, time, width, from, to, starts.defined() ? starts.data() : nullptr};
    run_rows(team_size, batch * time, RotateRow<Width, T>{rows});
  };
  const Tensor<T> y(x.shape());
  run(x.data(), y.data());
  require_close(y, as_doubles(expected), rounding<T>(1e-6));
  const Tensor<T> in_place = x.clone();
  run(in_place.data(), in_place.data());
  require_identical(in_place, y);
}

}  // namespace

TEMPLATE_TEST_CASE("rotary positions by teams", "", float, double, bfloat16, float16) {
  for (const int team_size : {1, 3}) {
    for (const double direction : {1, -1}) {
      check<4, TestType>({.size = 16, .heads = 2, .first_position = 7}, 48, direction, team_size);
      check<1, TestType>({.size = 6, .heads = 3}, 21, direction, team_size);
      const auto starts = Tensor<std::int32_t>::from({2, 5}, std::vector<std::int32_t>{0, 0, 2, 2, 4, 0, 1, 1, 1, 1});
      check<2, TestType>({.size = 8, .heads = 2}, 18, direction, team_size, starts);
      const RotaryScaling yarn{.kind = RotaryScalingKind::yarn, .factor = 4, .trained_positions = 16, .attention_factor = 1.2};
      check<2, TestType>({.size = 12, .heads = 2, .first_position = 900, .scaling = yarn}, 24, direction, team_size);
    }
  }
}
