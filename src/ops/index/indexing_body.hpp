#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/base/pack.hpp"

// The functions of ops/index/indexing.hpp on a GPU. An index out of range reads NaN, or 0 for integers, and writes nothing.
namespace trireme::ops {

struct IndexingSizes {
  std::int64_t outer;
  std::int64_t rows;
  std::int64_t places;
  std::int64_t inner;
  bool shared;

  // The element of the table for place (o, p, i) of [outer, places, inner], or -1 if the index is out of range.
  TRIREME_TEAM std::int64_t table_place(const std::int64_t* index, std::int64_t o, std::int64_t p, std::int64_t i) const {
    const std::int64_t row = index[shared ? p : (o * places + p) * inner + i];
    return row >= 0 && row < rows ? (o * rows + row) * inner + i : -1;
  }
};

template <typename T>
TRIREME_TEAM T sum_of_both(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a + b;
  } else {
    return rounded<T>(widened(a) + widened(b));
  }
}

// The larger or the smaller one; NaN if one is NaN.
template <typename T>
TRIREME_TEAM T extreme_of_both(bool largest, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return (largest ? b > a : b < a) ? b : a;
  } else {
    const auto x = widened(a);
    const auto y = widened(b);
    return (largest ? y > x : y < x) || y != y ? b : a;
  }
}

// A thread for each element of y: number in [0, outer * places * inner).
template <typename T>
struct GatherElements {
  IndexingSizes sizes;
  const T* x;
  const std::int64_t* index;
  T* y;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t number) const {
    const std::int64_t i = number % sizes.inner;
    const std::int64_t p = number / sizes.inner % sizes.places;
    const std::int64_t o = number / sizes.inner / sizes.places;
    const std::int64_t at = sizes.table_place(index, o, p, i);
    const T value = at >= 0 ? x[at] : nothing();
    y[number] = accumulate ? sum_of_both(y[number], value) : value;
  }

  TRIREME_TEAM static T nothing() {
    if constexpr (std::is_integral_v<T>) {
      return 0;
    } else {
      return rounded<T>(std::numeric_limits<Accumulate<T>>::quiet_NaN());
    }
  }
};

// The elements that a thread writes. A line is the rows of the table at one place of [outer, inner]. Each line has `owners`
// threads, a power of two, which go through all its places in order, but each writes only the rows that it owns.
struct LineOwner {
  std::int64_t o;
  std::int64_t i;
  std::int64_t owner;
  std::int64_t owners;

  TRIREME_TEAM LineOwner(const IndexingSizes& sizes, std::int64_t owners_of_line, std::int64_t thread)
      : o(thread / sizes.inner % sizes.outer),
        i(thread % sizes.inner),
        owner(thread / sizes.inner / sizes.outer),
        owners(owners_of_line) {}

  // A place with an index out of range belongs to the first owner.
  TRIREME_TEAM bool owns(const IndexingSizes& sizes, std::int64_t table_place) const {
    const std::int64_t row = table_place < 0 ? 0 : table_place / sizes.inner - o * sizes.rows;
    return (row & (owners - 1)) == owner;
  }
};

// For thread in [0, outer * inner * owners).
template <bool adds, typename T>
struct ScatterLine {
  IndexingSizes sizes;
  std::int64_t owners;
  const T* source;
  const std::int64_t* index;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t thread) const {
    const LineOwner line(sizes, owners, thread);
    for (std::int64_t p = 0; p < sizes.places; ++p) {
      const std::int64_t at = sizes.table_place(index, line.o, p, line.i);
      if (at < 0 || !line.owns(sizes, at)) continue;
      const T value = source[(line.o * sizes.places + p) * sizes.inner + line.i];
      y[at] = adds ? sum_of_both(y[at], value) : value;
    }
  }
};

template <typename T>
struct ScatterExtremeLine {
  IndexingSizes sizes;
  std::int64_t owners;
  const T* source;
  const std::int64_t* index;
  T* y;
  bool largest;

  TRIREME_TEAM void operator()(std::int64_t thread) const {
    const LineOwner line(sizes, owners, thread);
    for (std::int64_t p = 0; p < sizes.places; ++p) {
      const std::int64_t at = sizes.table_place(index, line.o, p, line.i);
      if (at < 0 || !line.owns(sizes, at)) continue;
      y[at] = extreme_of_both(largest, y[at], source[(line.o * sizes.places + p) * sizes.inner + line.i]);
    }
  }
};

// As ScatterLine, but backwards: of equal indices scatter() kept the last one.
template <typename T>
struct ScatterLineBackward {
  IndexingSizes sizes;
  std::int64_t owners;
  T* dy;
  const std::int64_t* index;
  T* dsource;

  TRIREME_TEAM void operator()(std::int64_t thread) const {
    const LineOwner line(sizes, owners, thread);
    for (std::int64_t p = sizes.places - 1; p >= 0; --p) {
      const std::int64_t at = sizes.table_place(index, line.o, p, line.i);
      if (!line.owns(sizes, at)) continue;
      T value{};
      if (at >= 0) {
        value = dy[at];
        dy[at] = T{};
      }
      dsource[(line.o * sizes.places + p) * sizes.inner + line.i] = value;
    }
  }
};

// The number of owners of a line: several if there are too few lines to keep a GPU busy.
inline std::int64_t owners_of_line(const IndexingSizes& sizes) {
  constexpr std::int64_t enough = 1 << 13;
  std::int64_t owners = 1;
  while (2 * owners <= sizes.rows && 2 * owners * sizes.outer * sizes.inner <= enough) owners *= 2;
  return owners;
}

struct WidenIndex {
  const std::int32_t* index;
  std::int64_t* wide;

  TRIREME_TEAM void operator()(std::int64_t i) const { wide[i] = index[i]; }
};

}  // namespace trireme::ops
