#pragma once

#include "ops/base/pack.hpp"
#include "trireme/math/exponential.hpp"

// The norms of ops/norm.hpp, by teams; `centers` in the layer norm, not in the rms norm.
namespace trireme::ops {

// What NormForward has, as pointers that may be null where its tensors may be undefined.
template <typename T>
struct NormForwardPointers {
  using A = Accumulate<T>;
  const A* x;
  const T* residual;
  const A* weight;
  const A* bias;
  A epsilon;
  A* x_sum;
  T* y;
  A* mean;
  A* rstd;
  std::int64_t width;
};

template <typename T>
struct NormBackwardPointers {
  using A = Accumulate<T>;
  const A* x;
  const A* weight;
  const A* mean;
  const A* rstd;
  const T* dy;
  A* dx;
  bool accumulate_dx;
  T* dresidual;
  std::int64_t width;
};

template <int Width, bool centers, typename T>
struct NormalizeRow {
  using A = Accumulate<T>;
  NormForwardPointers<T> pass;

  // The mean first, then the squares of the differences: exact enough also for rows far from zero. What was read once is in the
  // first cache.
  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const A share = A(1) / static_cast<A>(pass.width);
    const A* x = pass.x + row * pass.width;
    A total = 0;
    if (pass.residual != nullptr) {
      const T* residual = pass.residual + row * pass.width;
      A* x_sum = pass.x_sum + row * pass.width;
      each_pack<Width>(team, pass.width, [&](std::int64_t j) {
        auto values = load<Width>(x + j);
        const auto added = load<Width>(residual + j);
        for (int k = 0; k < Width; ++k) total += values.at[k] += added.at[k];
        store<Width>(x_sum + j, values);
      });
      x = x_sum;
    } else if (centers) {
      each_pack<Width>(team, pass.width, [&](std::int64_t j) {
        const auto values = load<Width>(x + j);
        for (int k = 0; k < Width; ++k) total += values.at[k];
      });
    }
    const A mean = centers ? team.sum(total) * share : A(0);
    A squares = 0;
    each_pack<Width>(team, pass.width, [&](std::int64_t j) {
      const auto values = load<Width>(x + j);
      for (int k = 0; k < Width; ++k) squares += (values.at[k] - mean) * (values.at[k] - mean);
    });
    const A rstd = A(1) / math::square_root(team.sum(squares) * share + pass.epsilon);
    if (team.rank() == 0) {
      if (centers) pass.mean[row] = mean;
      pass.rstd[row] = rstd;
    }
    write(team, x, mean, rstd, pass.y + row * pass.width);
  }

 private:
  template <typename Team>
  TRIREME_TEAM void write(const Team& team, const A* x, A mean, A rstd, T* y) const {
    each_pack<Width>(team, pass.width, [&](std::int64_t j) {
      auto values = load<Width>(x + j);
      for (int k = 0; k < Width; ++k) values.at[k] = (values.at[k] - mean) * rstd;
      if (pass.weight != nullptr) {
        const auto weights = load<Width>(pass.weight + j);
        for (int k = 0; k < Width; ++k) values.at[k] *= weights.at[k];
      }
      if (centers && pass.bias != nullptr) {
        const auto biases = load<Width>(pass.bias + j);
        for (int k = 0; k < Width; ++k) values.at[k] += biases.at[k];
      }
      store<Width>(y + j, values);
    });
  }
};

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)). Without a mean, n is
// x * rstd and there is no average(g).
template <int Width, bool centers, typename T>
struct NormGradientOfRows {
  using A = Accumulate<T>;
  NormBackwardPointers<T> pass;

  // dweight[width] and dbias[width] become the sums over the rows [begin, end) alone; null: not wanted. A thread touches the
  // same elements of them for every row.
  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t begin, std::int64_t end, A* dweight, A* dbias) const {
    each_pack<Width>(team, pass.width, [&](std::int64_t j) {
      if (dweight != nullptr) store<Width>(dweight + j, {});
      if (dbias != nullptr) store<Width>(dbias + j, {});
    });
    for (std::int64_t row = begin; row < end; ++row) of_row(team, row, dweight, dbias);
  }

 private:
  struct Neighbours {
    Pack<A, Width> n;
    Pack<A, Width> g;
    Pack<A, Width> dy;
  };

  TRIREME_TEAM Neighbours neighbours(std::int64_t row, std::int64_t j, A mean, A rstd) const {
    Neighbours at{.n = load<Width>(pass.x + row * pass.width + j), .g = {}, .dy = load<Width>(pass.dy + row * pass.width + j)};
    for (int k = 0; k < Width; ++k) at.n.at[k] = (at.n.at[k] - mean) * rstd;
    at.g = at.dy;
    if (pass.weight != nullptr) {
      const auto weights = load<Width>(pass.weight + j);
      for (int k = 0; k < Width; ++k) at.g.at[k] *= weights.at[k];
    }
    return at;
  }

  template <typename Team>
  TRIREME_TEAM void of_row(const Team& team, std::int64_t row, A* dweight, A* dbias) const {
    const A share = A(1) / static_cast<A>(pass.width);
    const A rstd = pass.rstd[row];
    const A mean = centers ? pass.mean[row] : A(0);
    A sum_g = 0;
    A sum_gn = 0;
    each_pack<Width>(team, pass.width, [&](std::int64_t j) {
      const Neighbours at = neighbours(row, j, mean, rstd);
      for (int k = 0; k < Width; ++k) {
        sum_g += at.g.at[k];
        sum_gn += at.g.at[k] * at.n.at[k];
      }
      if (dweight != nullptr) {
        auto sums = load<Width>(dweight + j);
        for (int k = 0; k < Width; ++k) sums.at[k] += at.dy.at[k] * at.n.at[k];
        store<Width>(dweight + j, sums);
      }
      if (dbias != nullptr) {
        auto sums = load<Width>(dbias + j);
        for (int k = 0; k < Width; ++k) sums.at[k] += at.dy.at[k];
        store<Width>(dbias + j, sums);
      }
    });
    const A average_g = centers ? team.sum(sum_g) * share : A(0);
    const A average_gn = team.sum(sum_gn) * share;
    each_pack<Width>(team, pass.width, [&](std::int64_t j) {
      const Neighbours at = neighbours(row, j, mean, rstd);
      A* dx = pass.dx + row * pass.width + j;
      Pack<A, Width> values{};
      if (pass.accumulate_dx) values = load<Width>(dx);
      for (int k = 0; k < Width; ++k) values.at[k] += rstd * (at.g.at[k] - average_g - at.n.at[k] * average_gn);
      store<Width>(dx, values);
      if (pass.dresidual != nullptr) store<Width>(pass.dresidual + row * pass.width + j, values);
    });
  }
};

}  // namespace trireme::ops
