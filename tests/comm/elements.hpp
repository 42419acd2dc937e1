#pragma once

#include <algorithm>
#include <cstddef>

#include "trireme/core/collectives.hpp"

namespace trireme::test {

// Small whole numbers, so that every sum is exact in every type.
template <typename T>
T element(int rank, std::size_t index) {
  return static_cast<T>((static_cast<std::size_t>(rank) * 7 + index * 3) % 23 + 1);
}

template <typename T>
T reduced(ReduceOp op, int ranks, std::size_t index) {
  T result = element<T>(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const T value = element<T>(rank, index);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::fixed_sum:
      case ReduceOp::mean: result += value; break;
      case ReduceOp::min: result = std::min(result, value); break;
      case ReduceOp::max: result = std::max(result, value); break;
    }
  }
  return op == ReduceOp::mean ? result / static_cast<T>(ranks) : result;
}

}  // namespace trireme::test
