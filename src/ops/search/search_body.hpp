#pragma once

#include "ops/reduce/reductions_body.hpp"

// The searches of ops/search/search.hpp, a thread for each index.
namespace trireme::ops {

// Whether an element is equal to the extreme of its result. The extreme is NaN if any element is.
template <typename W>
TRIREME_HOST_DEVICE bool is_extreme(W element, W extreme) {
  return element == extreme || (element != element && extreme != extreme);
}

// The type in which ops/reduce/reductions.hpp returns extremes of elements T.
template <typename T>
using ExtremeOf = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

// The first extreme element of each result among every `parts`-th, or the index after the last element: for an index i of
// [outer, parts, inner].
template <typename T>
struct FirstExtreme {
  ReduceSizes sizes;
  std::int64_t parts;
  const T* x;
  const ExtremeOf<T>* extremes;  // [outer, inner]
  std::int64_t* first;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % sizes.inner;
    const std::int64_t o = i / sizes.inner / parts;
    const Wide<T> extreme = widened(extremes[o * sizes.inner + j]);
    const T* from = x + o * sizes.reduced * sizes.inner + j;
    std::int64_t r = i / sizes.inner % parts;
    while (r < sizes.reduced && !is_extreme<Wide<T>>(widened(from[r * sizes.inner]), extreme)) r += parts;
    first[i] = r < sizes.reduced ? r : sizes.reduced;
  }
};

// values[o, t, j] = x[o, indices[o, t, j], j]: an index i of values[outer, taken, inner].
template <typename T>
struct Take {
  ReduceSizes sizes;  // of x
  std::int64_t taken;
  const T* x;
  const std::int64_t* indices;
  T* values;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t o = i / sizes.inner / taken;
    values[i] = x[(o * sizes.reduced + indices[i]) * sizes.inner + i % sizes.inner];
  }
};

// dx[o, indices[o, t, j], j] = dy[o, t, j], or += with `accumulate`: an index i of dy[outer, taken, inner].
template <typename T>
struct TakeGradient {
  ReduceSizes sizes;  // of dx
  std::int64_t taken;
  const std::int64_t* indices;
  const T* dy;
  T* dx;
  bool accumulate;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t o = i / sizes.inner / taken;
    T& to = dx[(o * sizes.reduced + indices[i]) * sizes.inner + i % sizes.inner];
    to = accumulate ? rounded<T>(widened(to) + widened(dy[i])) : dy[i];
  }
};

}  // namespace trireme::ops
