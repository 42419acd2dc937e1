#pragma once

#include "ops/base/vector.hpp"

// Small matrix products whose result stays in registers: a tile of c is tile_rows rows by up to tile_vectors vectors.
namespace trireme::ops::TRIREME_ISA {

inline constexpr int tile_rows = 6;
inline constexpr int tile_vectors = num_registers == 32 ? 4 : 2;
template <typename T>
inline constexpr int tile_columns = tile_vectors* lanes<T>;

// The left operand: element (row, p) is data[row * stride + p], or data[p * stride + row] if transposed.
template <typename T, bool transposed>
struct Left {
  const T* data;
  std::int64_t stride;
};

// c[row][j] = sum over p < depth of a(row, p) * b[p * b_stride + j], or += that. Rows of `a` from `rows` on are not read, but
// all tile_rows rows of c are written.
template <int vectors, typename T, bool transposed>
[[gnu::noinline]] void multiply_vectors(Left<T, transposed> a, int rows, const T* b, std::int64_t b_stride, std::int64_t depth,
                                        T* c, std::int64_t c_stride, bool accumulate) {
  using V = Vector<T>;
  V sums[tile_rows][vectors];
  const T* row_of[tile_rows];
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
    row_of[row] = transposed ? a.data + row : a.data + (row < rows ? row : rows - 1) * a.stride;
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) {
      const auto* old = reinterpret_cast<const V*>(c + row * c_stride + vector * lanes<T>);
      sums[row][vector] = accumulate ? *old : V{};
    }
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    V right[vectors];
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) right[vector] = *reinterpret_cast<const V*>(b + vector * lanes<T>);
#pragma GCC unroll 8
    for (int row = 0; row < tile_rows; ++row) {
      const T left = transposed ? a.data[p * a.stride + row] : row_of[row][p];
#pragma GCC unroll 8
      for (int vector = 0; vector < vectors; ++vector) sums[row][vector] += left * right[vector];
    }
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) {
      *reinterpret_cast<V*>(c + row * c_stride + vector * lanes<T>) = sums[row][vector];
    }
  }
}

// The same for `columns` columns of b and c, at most tile_columns; whole vectors are read and written.
template <typename T, bool transposed>
void multiply_tile(Left<T, transposed> a, int rows, const T* b, std::int64_t b_stride, std::int64_t depth, T* c,
                   std::int64_t c_stride, std::int64_t columns, bool accumulate) {
  const auto vectors = static_cast<int>((columns + lanes<T> - 1) / lanes<T>);
  if (vectors == 1) return multiply_vectors<1>(a, rows, b, b_stride, depth, c, c_stride, accumulate);
  if constexpr (tile_vectors > 2) {
    if (vectors == 3) return multiply_vectors<3>(a, rows, b, b_stride, depth, c, c_stride, accumulate);
    if (vectors == 4) return multiply_vectors<4>(a, rows, b, b_stride, depth, c, c_stride, accumulate);
  }
  multiply_vectors<2>(a, rows, b, b_stride, depth, c, c_stride, accumulate);
}

// The same for any number of columns.
template <typename T, bool transposed>
void multiply_rows(Left<T, transposed> a, int rows, const T* b, std::int64_t b_stride, std::int64_t depth, T* c,
                   std::int64_t c_stride, std::int64_t columns, bool accumulate) {
  for (std::int64_t first = 0; first < columns; first += tile_columns<T>) {
    const std::int64_t part = columns - first < tile_columns<T> ? columns - first : tile_columns<T>;
    multiply_tile(a, rows, b + first, b_stride, depth, c + first, c_stride, part, accumulate);
  }
}

}  // namespace trireme::ops::TRIREME_ISA
