#pragma once

#include "ops/reduce/reductions_body.hpp"

// The operations of ops/search/cumulative.hpp. The elements of a row are cut into chunks of neighbours; a thread for each index
// of [outer, chunks, inner].
namespace trireme::ops {

// kind is sum or product. `backwards` goes from the last element to the first.
template <typename T>
struct CumulateChunks {
  Accumulation kind;
  ReduceSizes sizes;
  std::int64_t chunks;
  bool backwards;
  const T* x;

  TRIREME_HOST_DEVICE std::int64_t first_of(std::int64_t chunk) const { return sizes.reduced * chunk / chunks; }
  // The index of the r-th element in this direction.
  TRIREME_HOST_DEVICE std::int64_t place(std::int64_t o, std::int64_t r, std::int64_t j) const {
    return (o * sizes.reduced + (backwards ? sizes.reduced - 1 - r : r)) * sizes.inner + j;
  }
};

// totals[i] = the sum or product of chunk i.
template <typename T>
struct ChunkTotals {
  CumulateChunks<T> of;
  Wide<T>* totals;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % of.sizes.inner;
    const std::int64_t chunk = i / of.sizes.inner % of.chunks;
    const std::int64_t o = i / of.sizes.inner / of.chunks;
    Wide<T> total = nothing<Wide<T>>(of.kind);
    for (std::int64_t r = of.first_of(chunk); r < of.first_of(chunk + 1); ++r) {
      total = combined<Wide<T>>(of.kind, total, widened(of.x[of.place(o, r, j)]));
    }
    totals[i] = total;
  }
};

template <typename Y, typename W>
TRIREME_HOST_DEVICE void write_total(Y& y, W total, bool accumulate) {
  if constexpr (std::is_integral_v<Y>) {
    y = accumulate ? y + total : total;
  } else {
    const auto value = static_cast<Accumulate<Y>>(total);
    y = rounded<Y>(accumulate ? widened(y) + value : value);
  }
}

// y for each element of a chunk, from the totals of the chunks before it. Totals are not read if there is one chunk.
template <typename T, typename Y>
struct CumulateChunk {
  CumulateChunks<T> of;
  const Wide<T>* totals;
  Y* y;
  bool accumulate;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % of.sizes.inner;
    const std::int64_t chunk = i / of.sizes.inner % of.chunks;
    const std::int64_t o = i / of.sizes.inner / of.chunks;
    Wide<T> total = nothing<Wide<T>>(of.kind);
    for (std::int64_t c = 0; c < chunk; ++c) {
      total = combined<Wide<T>>(of.kind, total, totals[(o * of.chunks + c) * of.sizes.inner + j]);
    }
    for (std::int64_t r = of.first_of(chunk); r < of.first_of(chunk + 1); ++r) {
      const std::int64_t place = of.place(o, r, j);
      total = combined<Wide<T>>(of.kind, total, widened(of.x[place]));
      write_total(y[place], total, accumulate);
    }
  }
};

// dx[i] = the sum of dy[k] * the product of x[0 .. k] without x[i], over k >= i: the product of the elements before i, times
// dy[i] + x[i + 1] * (dy[i + 1] + x[i + 2] * ...). There is no division, so it is right if elements are 0. A thread for each
// [outer, inner].
template <typename T>
struct CumprodGradient {
  ReduceSizes sizes;
  const T* x;
  const T* dy;
  double* before;  // shape of x; scratch memory
  T* dx;
  bool accumulate;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t first = i / sizes.inner * sizes.reduced * sizes.inner + i % sizes.inner;
    double product = 1;
    for (std::int64_t r = 0; r < sizes.reduced; ++r) {
      before[first + r * sizes.inner] = product;
      product *= static_cast<double>(widened(x[first + r * sizes.inner]));
    }
    double behind = 0;
    for (std::int64_t r = sizes.reduced; r-- > 0;) {
      const std::int64_t place = first + r * sizes.inner;
      behind += static_cast<double>(widened(dy[place]));
      const auto value = static_cast<Accumulate<T>>(before[place] * behind);
      dx[place] = rounded<T>(accumulate ? widened(dx[place]) + value : value);
      behind *= static_cast<double>(widened(x[place]));
    }
  }
};

}  // namespace trireme::ops
