#pragma once

#include <cstdint>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/reduce/reduce_kernels.hpp"

namespace trireme::ops {

// Combines block(begin, count) of all blocks of sum_block elements in their order: the same result for any number of threads.
template <typename Result, typename Block, typename Combine>
Result combine_blocks(std::int64_t count, const Block& block, const Combine& combine) {
  const std::int64_t blocks = (count + sum_block - 1) / sum_block;
  std::vector<Result> results(static_cast<std::size_t>(blocks));
  parallel_ranges(blocks, 8, least_elements / sum_block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index * sum_block;
      results[static_cast<std::size_t>(index)] = block(first, std::min(sum_block, count - first));
    }
  });
  Result total{};
  for (const Result& result : results) total = combine(total, result);
  return total;
}

}  // namespace trireme::ops
