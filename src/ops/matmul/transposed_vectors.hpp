#pragma once

#include <utility>

#include "ops/base/vector.hpp"

namespace trireme::ops::TRIREME_ISA {

// A vector with natural alignment: as an argument of templates V would lose its attribute of being unaligned.
typedef float Aligned __attribute__((vector_size(vector_bytes)));

// One step of the transposition of `lanes<float>` rows of `lanes<float>` elements: rows i and i + half, i & half == 0, exchange
// their off-diagonal parts of `half` elements.
template <int half, int... lane>
void exchange(Aligned& upper, Aligned& lower, std::integer_sequence<int, lane...>) {
  const Aligned first = __builtin_shufflevector(upper, lower, ((lane & half) == 0 ? lane : lane - half + lanes<float>)...);
  lower = __builtin_shufflevector(upper, lower, ((lane & half) == 0 ? lane + half : lane + lanes<float>)...);
  upper = first;
}
template <int half>
void exchange_all(Aligned (&rows)[lanes<float>]) {
#pragma GCC unroll 16
  for (int row = 0; row < lanes<float>; ++row) {
    if ((row & half) == 0) exchange<half>(rows[row], rows[row + half], std::make_integer_sequence<int, lanes<float>>());
  }
  if constexpr (half > 1) exchange_all<half / 2>(rows);
}

}  // namespace trireme::ops::TRIREME_ISA
