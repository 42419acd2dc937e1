#pragma once

#include <type_traits>

#include "ops/array/arranged_copy.hpp"
#include "ops/base/pack.hpp"

// The copies of ops/array/copy_strided.hpp on a GPU.
namespace trireme::ops {

struct StridedPlace {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// The place number `index` of the `count` places of dims, the last dim fastest. Divides in 32 bits if possible, which is
// faster.
TRIREME_TEAM StridedPlace strided_place(const StridedCopy::Dim* dims, int size, std::int64_t index, std::int64_t count) {
  StridedPlace place;
  if (count <= 0x7FFFFFFF) {
    auto rest = static_cast<std::uint32_t>(index);
    for (int i = size - 1; i >= 0; --i) {
      const auto extent = static_cast<std::uint32_t>(dims[i].extent);
      const std::int64_t at = rest % extent;
      rest /= extent;
      place.from += at * dims[i].from;
      place.to += at * dims[i].to;
    }
  } else {
    for (int i = size - 1; i >= 0; --i) {
      const std::int64_t at = index % dims[i].extent;
      index /= dims[i].extent;
      place.from += at * dims[i].from;
      place.to += at * dims[i].to;
    }
  }
  return place;
}

// A thread for each word of elements: for i in [0, kept_count).
template <typename Word>
struct MoveWords {
  ArrangedCopy copy;
  const Word* x;
  Word* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const StridedPlace place = strided_place(copy.dims, copy.kept, i, copy.kept_count);
    y[place.to] = x[place.from];
  }
};

inline constexpr int strided_tile = 32;

// A team moves a square of the last dim, which is contiguous in y, and of another dim, contiguous in x, through its shared
// memory, so that neighbouring threads read and write neighbouring words.
template <typename Word>
struct MoveSquares {
  using Memory = Word[strided_tile][strided_tile + 1];  // one more, so that a column lies in different banks of shared memory

  StridedCopy::Dim outer[StridedCopy::max_dims];
  int size;  // of the outer dims
  StridedCopy::Dim rows;
  StridedCopy::Dim columns;
  std::int64_t outer_count;
  const Word* x;
  Word* y;

  TRIREME_TEAM static std::int64_t tiles_of(std::int64_t extent) { return (extent + strided_tile - 1) / strided_tile; }
  TRIREME_TEAM std::int64_t tiles() const { return outer_count * tiles_of(rows.extent) * tiles_of(columns.extent); }

  // For tile in [0, tiles()).
  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t tile, Memory& memory) const {
    const std::int64_t column = tile % tiles_of(columns.extent) * strided_tile;
    const std::int64_t row = tile / tiles_of(columns.extent) % tiles_of(rows.extent) * strided_tile;
    const std::int64_t number = tile / tiles_of(columns.extent) / tiles_of(rows.extent);
    const StridedPlace place = strided_place(outer, size, number, outer_count);
    for (int i = team.rank(); i < strided_tile * strided_tile; i += team.size()) {
      const int c = i / strided_tile;
      const int r = i % strided_tile;
      if (row + r >= rows.extent || column + c >= columns.extent) continue;
      memory[c][r] = x[place.from + (row + r) * rows.from + (column + c) * columns.from];
    }
    team.wait();
    for (int i = team.rank(); i < strided_tile * strided_tile; i += team.size()) {
      const int r = i / strided_tile;
      const int c = i % strided_tile;
      if (row + r >= rows.extent || column + c >= columns.extent) continue;
      y[place.to + (row + r) * rows.to + (column + c) * columns.to] = memory[c][r];
    }
    team.wait();  // before the next tile overwrites the memory
  }
};

// For a copy with the reading_dim() `reading`.
template <typename Word>
MoveSquares<Word> squares_of(const ArrangedCopy& copy, int reading, const void* x, void* y) {
  MoveSquares<Word> squares{.outer = {},
                            .size = 0,
                            .rows = copy.dims[reading],
                            .columns = copy.dims[copy.kept - 1],
                            .outer_count = 1,
                            .x = static_cast<const Word*>(x),
                            .y = static_cast<Word*>(y)};
  for (int i = 0; i + 1 < copy.kept; ++i) {
    if (i == reading) continue;
    squares.outer[squares.size++] = copy.dims[i];
    squares.outer_count *= copy.dims[i].extent;
  }
  return squares;
}

template <typename T>
TRIREME_TEAM T plus(T y, Accumulate<T> x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(y + x);
  } else {
    return rounded<T>(widened(y) + x);
  }
}

// y += x, a thread for each element: for i in [0, kept_count).
template <typename T>
struct AddStrided {
  ArrangedCopy copy;
  const T* x;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const StridedPlace place = strided_place(copy.dims, copy.kept, i, copy.kept_count);
    if constexpr (std::is_integral_v<T>) {
      y[place.to] = plus(y[place.to], x[place.from]);
    } else {
      y[place.to] = plus(y[place.to], widened(x[place.from]));
    }
  }
};

// y = the sum of x over the summed dims, or +=, a team for each element: for i in [0, kept_count). Sums are in double, so that
// their errors stay below those of rounding to T.
template <typename T>
struct SumStrided {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

  ArrangedCopy copy;
  const T* x;
  T* y;
  bool accumulate;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t i) const {
    const StridedPlace place = strided_place(copy.dims, copy.kept, i, copy.kept_count);
    Sum sum{};
    for (std::int64_t term = team.rank(); term < copy.summed_count; term += team.size()) {
      const StridedPlace at = strided_place(copy.dims + copy.kept, copy.summed, term, copy.summed_count);
      sum += value(x[place.from + at.from]);
    }
    sum = team.sum(sum);
    if (team.rank() != 0) return;
    if (accumulate) sum += value(y[place.to]);
    if constexpr (std::is_integral_v<T>) {
      y[place.to] = static_cast<T>(sum);
    } else {
      y[place.to] = rounded<T>(static_cast<Accumulate<T>>(sum));
    }
  }

  TRIREME_TEAM static Sum value(T element) {
    if constexpr (std::is_integral_v<T>) {
      return element;
    } else {
      return static_cast<Sum>(widened(element));
    }
  }
};

}  // namespace trireme::ops
