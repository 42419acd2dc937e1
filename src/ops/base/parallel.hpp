#pragma once

#include <omp.h>

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "trireme/core/first_exception.hpp"

namespace trireme::ops {

// The largest number of parts that parallel_ranges() makes here. The caller may itself be a thread of a parallel region.
inline std::int64_t most_parts() { return omp_get_max_threads(); }

// Calls body(begin, end), or body(begin, end, part) with the part's number from 0 on, for consecutive parts of [0, count), one
// on each of this rank's threads. A part is a multiple of `unit`. There are fewer parts if a thread would get less than `least`
// items, because a parallel region costs microseconds. An exception from body is rethrown here when all parts are done.
template <typename Body>
void parallel_ranges(std::int64_t count, std::int64_t unit, std::int64_t least, const Body& body) {
  const auto call = [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
    if constexpr (std::invocable<const Body&, std::int64_t, std::int64_t, std::int64_t>) {
      body(begin, end, part);
    } else {
      body(begin, end);
    }
  };
  const auto threads = std::min<std::int64_t>(most_parts(), count / std::max<std::int64_t>(least, 1));
  if (threads <= 1) {
    if (count > 0) call(0, count, 0);
    return;
  }
  const std::int64_t units = (count + unit - 1) / unit;
  FirstException thrown;
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const std::int64_t part = omp_get_thread_num();
    const std::int64_t parts = omp_get_num_threads();
    const std::int64_t begin = units * part / parts * unit;
    const std::int64_t end = std::min(count, units * (part + 1) / parts * unit);
    if (begin < end) thrown.guard([&] { call(begin, end, part); });
  }
  thrown.rethrow();
}

inline constexpr std::int64_t least_elements = 1 << 15;  // below this a thread is not worth it

// Parts of a contiguous array. No two parts share a cache line.
template <typename Body>
void parallel_elements(std::int64_t count, const Body& body) {
  parallel_ranges(count, 64, least_elements, body);
}

// Parts of the rows of a matrix.
template <typename Body>
void parallel_rows(std::int64_t rows, std::int64_t width, const Body& body) {
  parallel_ranges(rows, 1, least_elements / std::max<std::int64_t>(width, 1), body);
}

}  // namespace trireme::ops
