#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace trireme::ops {

// Calls body(begin, end) for parts of [0, count) on this rank's threads: parts of at least `grain`, borders at its multiples.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body body) {
  const std::int64_t pieces = (count + grain - 1) / grain;
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), pieces);
  if (threads <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t begin = std::min(count, pieces * thread / threads * grain);
    const std::int64_t end = std::min(count, pieces * (thread + 1) / threads * grain);
    if (begin < end) body(begin, end);
  }
}

inline constexpr std::int64_t elements_per_part = 16384;  // less is not worth a thread

}  // namespace trireme::ops
