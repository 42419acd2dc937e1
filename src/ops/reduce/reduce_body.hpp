#pragma once

#include "ops/base/pack.hpp"

// The sums of ops/reduce/reduce.hpp. The order of additions depends on the sizes and the alignment alone.
namespace trireme::ops {

// The sum over rows of x[rows, width], for the `Width` columns from `column` on.
template <int Width, typename T>
struct ColumnSums {
  using A = Accumulate<T>;

  const T* x;
  std::int64_t width;

  // Sums every `step`-th row of [row, end).
  TRIREME_TEAM Pack<A, Width> operator()(std::int64_t row, std::int64_t end, std::int64_t step, std::int64_t column) const {
    Pack<A, Width> sums{};
    for (; row < end; row += step) {
      const Pack<A, Width> values = load<Width>(x + row * width + column);
      for (int k = 0; k < Width; ++k) sums.at[k] += values.at[k];
    }
    return sums;
  }
};

// Cuts the rows into parts and sums each part: sums[parts, width]. A thread for each i in
// [0, parts * width / Width).
template <int Width, typename T>
struct SumRowParts {
  ColumnSums<Width, T> of;
  std::int64_t rows;
  std::int64_t parts;
  Accumulate<T>* sums;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t packs = of.width / Width;
    const std::int64_t part = i / packs;
    const std::int64_t column = i % packs * Width;
    store<Width>(sums + part * of.width + column, of(rows * part / parts, rows * (part + 1) / parts, 1, column));
  }
};

// columns[j] = the sum of all rows, or += with `accumulate`. A team for each pack of columns.
template <int Width, typename T>
struct SumRows {
  ColumnSums<Width, T> of;
  std::int64_t rows;
  Accumulate<T>* columns;
  bool accumulate;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t pack) const {
    const std::int64_t column = pack * Width;
    auto sums = of(team.rank(), rows, team.size(), column);
    for (int k = 0; k < Width; ++k) sums.at[k] = team.sum(sums.at[k]);
    if (team.rank() != 0) return;
    if (accumulate) {
      const auto before = load<Width>(columns + column);
      for (int k = 0; k < Width; ++k) sums.at[k] += before.at[k];
    }
    store<Width>(columns + column, sums);
  }
};

struct Itself {
  TRIREME_TEAM double operator()(double x) const { return x; }
};
struct Square {
  TRIREME_TEAM double operator()(double x) const { return x * x; }
};

// sums[part] = sum of value(x[i]) over every `parts`-th run of team.size() packs, of `count` elements.
template <int Width, typename T, typename Value>
struct SumParts {
  const T* x;
  std::int64_t count;
  std::int64_t parts;
  double* sums;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t packs = count / Width;
    const std::int64_t threads = parts * team.size();
    const std::int64_t thread = part * team.size() + team.rank();
    double sum = 0;
    for (std::int64_t pack = thread; pack < packs; pack += threads) {
      const auto values = load<Width>(x + pack * Width);
      for (int k = 0; k < Width; ++k) sum += Value{}(static_cast<double>(values.at[k]));
    }
    for (std::int64_t i = packs * Width + thread; i < count; i += threads) sum += Value{}(static_cast<double>(widened(x[i])));
    sum = team.sum(sum);
    if (team.rank() == 0) sums[part] = sum;
  }
};

// By one team: *total = the sum of `count` numbers, or += with `accumulate`.
struct Total {
  const double* sums;
  std::int64_t count;
  double* total;
  bool accumulate = false;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    double sum = 0;
    for (std::int64_t i = team.rank(); i < count; i += team.size()) sum += sums[i];
    sum = team.sum(sum);
    if (team.rank() == 0) *total = accumulate ? *total + sum : sum;
  }
};

}  // namespace trireme::ops
