#pragma once

#include "ops/base/pack.hpp"
#include "trireme/math/exponential.hpp"

// The norms of ops/norm/norm.hpp, by teams. `centers` is true for the layer norm, false for the rms norm.
namespace trireme::ops {

// NormForward as pointers, which may be null for tensors that may be undefined.
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

// A team's row. Each thread has its share in registers: at most `Packs` packs.
template <int Width, int Packs, typename T>
class RowInRegisters {
 public:
  using A = Accumulate<T>;

  template <typename Team>
  TRIREME_TEAM RowInRegisters(const Team& team, const A* x, std::int64_t width) {
    each_numbered_pack<Width, Packs>(team, width, [&](int number, std::int64_t j) { packs_[number] = load<Width>(x + j); });
  }

  // The row becomes x + residual, which is also written to x_sum.
  template <typename Team>
  TRIREME_TEAM void add(const Team& team, const T* residual, std::int64_t width, A* x_sum) {
    Pack<T, Width> added[Packs];
    each_numbered_pack<Width, Packs>(team, width,
                                     [&](int number, std::int64_t j) { added[number] = read<Width>(residual + j); });
    each_numbered_pack<Width, Packs>(team, width, [&](int number, std::int64_t j) {
      for (int k = 0; k < Width; ++k) packs_[number].at[k] += widened(added[number].at[k]);
      store<Width>(x_sum + j, packs_[number]);
    });
  }

  // Calls visit(j, pack) for the thread's share.
  template <typename Team, typename Visit>
  TRIREME_TEAM void each(const Team& team, std::int64_t width, Visit visit) const {
    each_numbered_pack<Width, Packs>(team, width, [&](int number, std::int64_t j) { visit(j, packs_[number]); });
  }

 private:
  Pack<A, Width> packs_[Packs];
};

// A row that is too long for registers: it is read again each time, from the L1 cache if it fits.
template <int Width, typename T>
class RowInMemory {
 public:
  using A = Accumulate<T>;

  template <typename Team>
  TRIREME_TEAM RowInMemory(const Team&, const A* x, std::int64_t) : x_(x) {}

  template <typename Team>
  TRIREME_TEAM void add(const Team& team, const T* residual, std::int64_t width, A* x_sum) {
    each(team, width, [&](std::int64_t j, Pack<A, Width> values) {
      const auto added = load<Width>(residual + j);
      for (int k = 0; k < Width; ++k) values.at[k] += added.at[k];
      store<Width>(x_sum + j, values);
    });
    x_ = x_sum;
  }

  template <typename Team, typename Visit>
  TRIREME_TEAM void each(const Team& team, std::int64_t width, Visit visit) const {
    each_pack<Width>(team, width, [&](std::int64_t j) { visit(j, load<Width>(x_ + j)); });
  }

 private:
  const A* x_;
};

// Computes the mean first, then the squares of the differences from it: accurate also for rows far from zero.
template <int Width, bool centers, typename T, typename Row>
struct NormalizeRow {
  using A = Accumulate<T>;
  NormForwardPointers<T> pass;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const A share = A(1) / static_cast<A>(pass.width);
    const std::int64_t place = row * pass.width;
    Row x(team, pass.x + place, pass.width);
    if (pass.residual != nullptr) x.add(team, pass.residual + place, pass.width, pass.x_sum + place);
    A mean = 0;
    if (centers) {
      A total = 0;
      x.each(team, pass.width, [&](std::int64_t, const Pack<A, Width>& values) {
        for (int k = 0; k < Width; ++k) total += values.at[k];
      });
      mean = team.sum(total) * share;
    }
    A squares = 0;
    x.each(team, pass.width, [&](std::int64_t, const Pack<A, Width>& values) {
      for (int k = 0; k < Width; ++k) squares += (values.at[k] - mean) * (values.at[k] - mean);
    });
    const A rstd = A(1) / math::square_root(team.sum(squares) * share + pass.epsilon);
    if (team.rank() == 0) {
      if (centers) pass.mean[row] = mean;
      pass.rstd[row] = rstd;
    }
    x.each(team, pass.width, [&](std::int64_t j, Pack<A, Width> values) {
      for (int k = 0; k < Width; ++k) values.at[k] = (values.at[k] - mean) * rstd;
      if (pass.weight != nullptr) {
        const auto weights = load<Width>(pass.weight + j);
        for (int k = 0; k < Width; ++k) values.at[k] *= weights.at[k];
      }
      if (centers && pass.bias != nullptr) {
        const auto biases = load<Width>(pass.bias + j);
        for (int k = 0; k < Width; ++k) values.at[k] += biases.at[k];
      }
      store<Width>(pass.y + place + j, values);
    });
  }
};

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)). Without a mean, n is
// x * rstd and there is no average(g).
template <int Width, bool centers, typename T>
struct NormGradientOfRows {
  using A = Accumulate<T>;
  NormBackwardPointers<T> pass;

  // dweight[width] and dbias[width] become the sums over the rows [begin, end); null: not computed. A thread writes the same
  // elements of them for every row.
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
    const device::Two<A> sums = team.sum(device::Two<A>{sum_g, sum_gn});
    const A average_g = centers ? sums.first * share : A(0);
    const A average_gn = sums.second * share;
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

// The same for rows with at most one pack for each thread, which keeps its elements and sums in registers. The next row is read
// while the current one is computed.
template <int Width, bool centers, typename T>
struct NormGradientInRegisters {
  using A = Accumulate<T>;
  NormBackwardPointers<T> pass;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t begin, std::int64_t end, A* dweight, A* dbias) const {
    const std::int64_t column = std::int64_t{team.rank()} * Width;
    const bool in_row = column < pass.width;
    Columns of{};
    if (in_row) {
      for (int k = 0; k < Width; ++k) of.weight.at[k] = pass.weight == nullptr ? A(1) : pass.weight[column + k];
    }
    Row next{};
    if (in_row && begin < end) next = read(begin, column);
    for (std::int64_t row = begin; row < end; ++row) {
      const Row here = next;
      if (in_row && row + 1 < end) next = read(row + 1, column);
      of_row(team, here, row * pass.width + column, in_row, of);
    }
    if (in_row && dweight != nullptr) store<Width>(dweight + column, of.dweight);
    if (in_row && dbias != nullptr) store<Width>(dbias + column, of.dbias);
  }

 private:
  struct Columns {
    Pack<A, Width> weight;
    Pack<A, Width> dweight;
    Pack<A, Width> dbias;
  };
  struct Row {
    Pack<A, Width> x;
    Pack<T, Width> dy;
    A mean;
    A rstd;
  };

  TRIREME_TEAM Row read(std::int64_t row, std::int64_t column) const {
    const std::int64_t place = row * pass.width + column;
    return {.x = load<Width>(pass.x + place),
            .dy = ops::read<Width>(pass.dy + place),
            .mean = centers ? pass.mean[row] : A(0),
            .rstd = pass.rstd[row]};
  }

  // Threads beyond the end of the row have zeros in `row`.
  template <typename Team>
  TRIREME_TEAM void of_row(const Team& team, const Row& row, std::int64_t place, bool in_row, Columns& of) const {
    const A share = A(1) / static_cast<A>(pass.width);
    Pack<A, Width> n;
    Pack<A, Width> g;
    device::Two<A> sums{0, 0};
    for (int k = 0; k < Width; ++k) {
      const A dy = widened(row.dy.at[k]);
      n.at[k] = (row.x.at[k] - row.mean) * row.rstd;
      g.at[k] = dy * of.weight.at[k];
      sums.first += g.at[k];
      sums.second += g.at[k] * n.at[k];
      of.dweight.at[k] += dy * n.at[k];
      of.dbias.at[k] += dy;
    }
    sums = team.sum(sums);
    if (!in_row) return;
    const A average_g = centers ? sums.first * share : A(0);
    const A average_gn = sums.second * share;
    Pack<A, Width> values{};
    if (pass.accumulate_dx) values = load<Width>(pass.dx + place);
    for (int k = 0; k < Width; ++k) values.at[k] += row.rstd * (g.at[k] - average_g - n.at[k] * average_gn);
    store<Width>(pass.dx + place, values);
    if (pass.dresidual != nullptr) store<Width>(pass.dresidual + place, values);
  }
};

}  // namespace trireme::ops
