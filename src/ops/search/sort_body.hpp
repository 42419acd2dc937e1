#pragma once

#include <type_traits>

#include "ops/reduce/reductions_body.hpp"

// The sort of ops/search/sort.hpp. Elements are converted to unsigned keys with the same order. Pairs of key and place are
// sorted, of which no two are equal.
namespace trireme::ops {

struct Ranked {
  std::uint64_t key;
  std::int64_t place;
};

TRIREME_HOST_DEVICE bool comes_before(const Ranked& a, const Ranked& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// -0 and 0 have one key, all NaN have the largest.
template <typename W>
TRIREME_HOST_DEVICE std::uint64_t ascending_key(W x) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if constexpr (std::is_integral_v<W>) {
    return static_cast<std::uint64_t>(x) ^ sign;
  } else {
    if (x != x) return ~std::uint64_t{0};
    const double unsigned_zero = x == 0 ? 0.0 : x;
    const auto bits = __builtin_bit_cast(std::uint64_t, unsigned_zero);
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
}

// The key of element `place` in row `row` of [outer, inner], with its place.
template <typename T>
TRIREME_HOST_DEVICE Ranked ranked(const ReduceSizes& sizes, const T* x, bool descending, std::int64_t row, std::int64_t place) {
  const std::int64_t at = (row / sizes.inner * sizes.reduced + place) * sizes.inner + row % sizes.inner;
  const std::uint64_t key = ascending_key<Wide<T>>(widened(x[at]));
  return {descending ? ~key : key, place};
}

// elements[results, length], where length is a power of two. Elements after the end of the row are sorted last. A thread for
// each.
template <typename T>
struct RankElements {
  ReduceSizes sizes;
  const T* x;
  bool descending;
  std::int64_t length;
  Ranked* elements;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t place = i % length;
    elements[i] = place < sizes.reduced ? ranked(sizes, x, descending, i / length, place) : Ranked{~std::uint64_t{0}, place};
  }
};

// One step of a bitonic sort (Batcher 1968, "Sorting networks and their applications"): runs of `run` elements, each sorted
// upwards or downwards in turn, are merged by comparing elements `distance` apart. A thread for each pair, in
// [0, results * length / 2).
struct CompareElements {
  std::int64_t length;
  std::int64_t run;  // length of the runs after merging
  std::int64_t distance;
  Ranked* elements;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t first = i / distance * 2 * distance + i % distance;
    Ranked& a = elements[first];
    Ranked& b = elements[first + distance];
    const bool upwards = first % length / run % 2 == 0;
    const Ranked former = a;
    const Ranked latter = b;
    if (comes_before(latter, former) == upwards) {
      a = latter;
      b = former;
    }
  }
};

// The first `taken` elements of each row, sorted: an index i of values[outer, taken, inner].
template <typename T>
struct TakeRanked {
  ReduceSizes sizes;
  std::int64_t length;
  std::int64_t taken;
  const Ranked* elements;
  const T* x;
  T* values;
  std::int64_t* indices;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % sizes.inner;
    const std::int64_t o = i / sizes.inner / taken;
    const std::int64_t place = elements[(o * sizes.inner + j) * length + i / sizes.inner % taken].place;
    values[i] = x[(o * sizes.reduced + place) * sizes.inner + j];
    indices[i] = place;
  }
};

}  // namespace trireme::ops
