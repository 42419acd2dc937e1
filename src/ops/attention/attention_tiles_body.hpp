#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/base/convert.hpp"

// Tiles: some rows of a head's queries, keys, values or results, in the scratch memory of a team.
namespace trireme::ops {

// Rows of a matrix in scratch memory.
template <typename A>
struct Tile {
  A* data;
  int stride;
  TRIREME_HOST_DEVICE A& at(int row, int column) const { return data[row * stride + column]; }
};

// The tiles in a team's scratch memory: how many are as wide as a head, how many are square, and how many single columns there
// are.
struct TileCounts {
  int wide;
  int square;
  int columns;

  // Odd, so that neighbouring rows begin in different banks of a GPU's shared memory.
  static constexpr std::int64_t stride(std::int64_t width) { return width | 1; }
  constexpr std::int64_t elements(int rows, std::int64_t size) const {
    return rows * (wide * stride(size) + square * stride(rows) + columns);
  }
};

inline constexpr std::size_t scratch_bytes = 48 << 10;  // available to every block of threads
inline constexpr int largest_tile = 32;

// The number of rows of a tile, a power of 2; 0 if heads are so large that not even one row fits.
constexpr int tile_rows(const TileCounts& counts, std::int64_t size, std::size_t element_bytes) {
  int rows = largest_tile;
  while (rows > 0 && static_cast<std::size_t>(counts.elements(rows, size)) * element_bytes > scratch_bytes) rows /= 2;
  return rows;
}

// Hands out the parts of scratch memory.
template <typename A>
class Scratch {
 public:
  TRIREME_HOST_DEVICE Scratch(A* base, int rows, std::int64_t size) : next_(base), rows_(rows), size_(static_cast<int>(size)) {}
  TRIREME_HOST_DEVICE Tile<A> wide() { return tile(static_cast<int>(TileCounts::stride(size_))); }
  TRIREME_HOST_DEVICE Tile<A> square() { return tile(static_cast<int>(TileCounts::stride(rows_))); }
  TRIREME_HOST_DEVICE A* column() { return tile(1).data; }

 private:
  TRIREME_HOST_DEVICE Tile<A> tile(int stride) {
    const Tile<A> result{next_, stride};
    next_ += rows_ * stride;
    return result;
  }

  A* next_;
  int rows_;
  int size_;
};

// A tile of the rows [0, end) of a head of a sequence.
struct TilePlace {
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t first;
  int rows;

  TRIREME_HOST_DEVICE static std::int64_t tiles(std::int64_t end, int rows) { return (end + rows - 1) / rows; }
  TRIREME_HOST_DEVICE static TilePlace of(std::int64_t item, std::int64_t heads, std::int64_t end, int rows) {
    const std::int64_t index = item / tiles(end, rows);
    const std::int64_t first = item % tiles(end, rows) * rows;
    return {index / heads, index % heads, first, rows_from(first, end, rows)};
  }
  TRIREME_HOST_DEVICE static int rows_from(std::int64_t first, std::int64_t end, int rows) {
    return static_cast<int>(end - first < rows ? end - first : rows);
  }
};

// The threads of the team share the calls of body(row, column).
template <typename Team, typename Body>
TRIREME_HOST_DEVICE void for_each_element(const Team& team, int rows, std::int64_t columns, const Body& body) {
  const int width = static_cast<int>(columns);
  for (int i = team.rank(); i < rows * width; i += team.size()) body(i / width, i % width);
}
template <typename Team, typename Body>
TRIREME_HOST_DEVICE void for_each_row(const Team& team, int rows, const Body& body) {
  for (int row = team.rank(); row < rows; row += team.size()) body(row);
}

template <typename Team, typename T, typename A>
TRIREME_HOST_DEVICE void load(const Team& team, const T* from, std::int64_t stride, int rows, std::int64_t size,
                              const Tile<A>& tile) {
  for_each_element(team, rows, size, [&](int row, int j) { tile.at(row, j) = widened(from[row * stride + j]); });
}
template <typename Team, typename T, typename A>
TRIREME_HOST_DEVICE void store(const Team& team, const Tile<A>& tile, int rows, std::int64_t size, T* to, std::int64_t stride) {
  for_each_element(team, rows, size, [&](int row, int j) { to[row * stride + j] = rounded<T>(tile.at(row, j)); });
}
template <typename A>
TRIREME_HOST_DEVICE A dot(const Tile<A>& a, int a_row, const Tile<A>& b, int b_row, std::int64_t size) {
  A sum = 0;
  for (int j = 0; j < size; ++j) sum += a.at(a_row, j) * b.at(b_row, j);
  return sum;
}

}  // namespace trireme::ops
