#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/parallel_for.hpp"

namespace trireme::ops {

inline constexpr std::int64_t block_of_sum = 4096;  // elements

// The sum of block(x, count) over blocks of 4,096 elements, added in block order: the same for any number of threads.
template <typename T, typename Block>
double block_sums(const T* x, std::int64_t count, Block block) {
  std::vector<double> sums(static_cast<std::size_t>((count + block_of_sum - 1) / block_of_sum));
  parallel_for(static_cast<std::int64_t>(sums.size()), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index * block_of_sum;
      sums[static_cast<std::size_t>(index)] = block(x + first, std::min(block_of_sum, count - first));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace trireme::ops
