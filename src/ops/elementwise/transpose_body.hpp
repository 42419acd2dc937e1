#pragma once

#include "ops/base/pack.hpp"
#include "ops/elementwise/transpose_sizes.hpp"

// The transpose of ops/transpose.hpp. It moves bits: T is any type of the elements' size.
namespace trireme::ops {

// Runs of inner elements stay together: a thread for each pack of y.
template <int Width, typename T>
struct MoveRuns {
  TransposeSizes sizes;
  const T* x;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t pack) const {
    const std::int64_t packs = sizes.inner / Width;
    const std::int64_t i = pack % packs;
    const std::int64_t row = pack / packs % sizes.rows;
    const std::int64_t rest = pack / packs / sizes.rows;  // of [outer, columns, middle]
    const std::int64_t m = rest % sizes.middle;
    const std::int64_t column = rest / sizes.middle % sizes.columns;
    const std::int64_t o = rest / sizes.middle / sizes.columns;
    const std::int64_t from = ((o * sizes.rows + row) * sizes.middle + m) * sizes.columns + column;
    reinterpret_cast<Pack<T, Width>*>(y)[pack] = reinterpret_cast<const Pack<T, Width>*>(x)[from * packs + i];
  }
};

inline constexpr int transpose_tile = 32;

// Where inner is 1: a team moves a square of rows and columns through its memory, so that neighbouring threads both read and
// write neighbours.
template <typename T>
struct MoveTile {
  using Memory = T[transpose_tile][transpose_tile + 1];  // one more: a column then lies in different banks of a GPU's memory

  TransposeSizes sizes;
  const T* x;
  T* y;

  TRIREME_TEAM std::int64_t row_tiles() const { return (sizes.rows + transpose_tile - 1) / transpose_tile; }
  TRIREME_TEAM std::int64_t column_tiles() const { return (sizes.columns + transpose_tile - 1) / transpose_tile; }

  // For tile in [0, outer * middle * row_tiles * column_tiles).
  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t tile, Memory& memory) const {
    const std::int64_t first_column = tile % column_tiles() * transpose_tile;
    const std::int64_t first_row = tile / column_tiles() % row_tiles() * transpose_tile;
    const std::int64_t rest = tile / column_tiles() / row_tiles();  // of [outer, middle]
    const std::int64_t m = rest % sizes.middle;
    const std::int64_t o = rest / sizes.middle;
    for (int i = team.rank(); i < transpose_tile * transpose_tile; i += team.size()) {
      const int row = i / transpose_tile;
      const int column = i % transpose_tile;
      if (first_row + row >= sizes.rows || first_column + column >= sizes.columns) continue;
      memory[row][column] = x[((o * sizes.rows + first_row + row) * sizes.middle + m) * sizes.columns + first_column + column];
    }
    team.wait();
    for (int i = team.rank(); i < transpose_tile * transpose_tile; i += team.size()) {
      const int column = i / transpose_tile;
      const int row = i % transpose_tile;
      if (first_row + row >= sizes.rows || first_column + column >= sizes.columns) continue;
      y[((o * sizes.columns + first_column + column) * sizes.middle + m) * sizes.rows + first_row + row] = memory[row][column];
    }
    team.wait();  // before the next tile takes the memory
  }
};

}  // namespace trireme::ops
