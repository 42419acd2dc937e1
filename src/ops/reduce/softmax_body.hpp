#pragma once

#include <limits>

#include "ops/base/pack.hpp"
#include "ops/reduce/exponentials.hpp"
#include "trireme/math/exponential.hpp"

// The operations of ops/reduce/softmax.hpp, a team for each row. `logarithm` is true for log_softmax.
namespace trireme::ops {

// In one pass: the sum so far is rescaled at each larger element. Four packs are read before the first one is used.
template <int Width, typename Team, typename T>
TRIREME_TEAM Exponentials<Accumulate<T>> sum_exponentials(const Team& team, const T* x, std::int64_t width) {
  using A = Accumulate<T>;
  A largest = std::numeric_limits<A>::lowest();
  A sum = 0;
  const auto add = [&]<int packs>(const Pack<T, Width>(&of)[packs]) {
    const A before = largest;
    for (int pack = 0; pack < packs; ++pack) {
      for (int k = 0; k < Width; ++k) {
        const A value = widened(of[pack].at[k]);
        largest = value > largest ? value : largest;
      }
    }
    sum *= math::exp(before - largest);
    for (int pack = 0; pack < packs; ++pack) {
      for (int k = 0; k < Width; ++k) sum += math::exp(widened(of[pack].at[k]) - largest);
    }
  };
  const std::int64_t step = std::int64_t{team.size()} * Width;
  std::int64_t j = std::int64_t{team.rank()} * Width;
  for (; j + 3 * step < width; j += 4 * step) {
    const Pack<T, Width> packs[] = {read<Width>(x + j), read<Width>(x + j + step), read<Width>(x + j + 2 * step),
                                    read<Width>(x + j + 3 * step)};
    add(packs);
  }
  for (; j < width; j += step) {
    const Pack<T, Width> packs[] = {read<Width>(x + j)};
    add(packs);
  }
  const A of_all = team.max(largest);
  return {of_all, team.sum(sum * math::exp(largest - of_all))};
}

template <int Width, bool logarithm, typename T>
struct SoftmaxRow {
  const T* x;
  T* y;
  std::int64_t width;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    using A = Accumulate<T>;
    const T* from = x + row * width;
    T* to = y + row * width;
    const auto [largest, sum] = sum_exponentials<Width>(team, from, width);
    const A share = logarithm ? math::log(sum) : A(1) / sum;
    each_pack<Width>(team, width, [&, largest = largest](std::int64_t j) {
      auto values = load<Width>(from + j);
      for (int k = 0; k < Width; ++k) {
        const A difference = values.at[k] - largest;
        values.at[k] = logarithm ? difference - share : share * math::exp(difference);
      }
      store<Width>(to + j, values);
    });
  }
};

// With the results y: dx = y * (dy - sum(y * dy)), or for the logarithm dy - exp(y) * sum(dy).
template <int Width, bool logarithm, typename T>
struct SoftmaxGradientRow {
  const T* y;
  const T* dy;
  T* dx;
  bool accumulate;
  std::int64_t width;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    using A = Accumulate<T>;
    const std::int64_t place = row * width;
    A sum = 0;
    each_pack<Width>(team, width, [&](std::int64_t j) {
      const auto results = load<Width>(y + place + j);
      const auto gradients = load<Width>(dy + place + j);
      for (int k = 0; k < Width; ++k) sum += logarithm ? gradients.at[k] : results.at[k] * gradients.at[k];
    });
    const A total = team.sum(sum);
    each_pack<Width>(team, width, [&](std::int64_t j) {
      const auto results = load<Width>(y + place + j);
      const auto gradients = load<Width>(dy + place + j);
      Pack<A, Width> values{};
      if (accumulate) values = load<Width>(dx + place + j);
      for (int k = 0; k < Width; ++k) {
        values.at[k] +=
            logarithm ? gradients.at[k] - math::exp(results.at[k]) * total : results.at[k] * (gradients.at[k] - total);
      }
      store<Width>(dx + place + j, values);
    });
  }
};

}  // namespace trireme::ops
