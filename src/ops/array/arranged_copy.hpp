#pragma once

#include <cstdint>

#include "trireme/ops/array/strided_copy.hpp"

// The boxes of ops/array/copy_strided.hpp as kernels want them.
namespace trireme::ops {

// Dims of more than one element, the outermost first: those that move in y by falling distances, then those that are summed
// over. Distances in y are positive or 0; neighbouring dims that could be one are one.
struct ArrangedCopy {
  StridedCopy::Dim dims[StridedCopy::max_dims];
  int kept = 0;    // dims that move in y
  int summed = 0;  // dims behind them that are summed over
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t kept_count = 1;    // elements of y
  std::int64_t summed_count = 1;  // elements of x for each of them; 1 where no dim is summed over
};

ArrangedCopy arrange(const StridedCopy& box);

// Neighbours that move together, as one word of 2, 4, 8 or 16 bytes: counts and distances become those of words. Returns the
// bytes of a word. Elements of `element_bytes` begin at multiples of `alignment` bytes in x and in y. For copies without sums.
int take_words(ArrangedCopy& copy, int element_bytes, std::int64_t alignment);

// The dim of a copy along which x is read in order where that is another than the last, along which y is written in order: -1
// where both are the last.
int reading_dim(const ArrangedCopy& copy);

}  // namespace trireme::ops
