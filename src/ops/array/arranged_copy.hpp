#pragma once

#include <cstdint>

#include "trireme/ops/array/strided_copy.hpp"

// The boxes of ops/array/copy_strided.hpp, in the form that kernels need.
namespace trireme::ops {

// The dims of extent above 1, outermost first: the `kept` dims by falling stride in y, then the `summed` dims. Strides in y are
// positive or 0. Neighbouring dims are merged where possible.
struct ArrangedCopy {
  StridedCopy::Dim dims[StridedCopy::max_dims];
  int kept = 0;    // dims with a stride in y
  int summed = 0;  // dims after them, which are summed over
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t kept_count = 1;    // elements of y
  std::int64_t summed_count = 1;  // elements of x for each of them; 1 where no dim is summed over
};

ArrangedCopy arrange(const StridedCopy& box);

// Combines neighbouring elements that move together into words of up to 16 bytes: counts and strides become those of words.
// Returns the bytes of a word. Elements have `element_bytes` and begin at multiples of `alignment` bytes in x and in y. For
// copies without sums.
int take_words(ArrangedCopy& copy, int element_bytes, std::int64_t alignment);

// The dim along which x is contiguous, if it is not the last dim, along which y is contiguous; -1 if it is the last.
int reading_dim(const ArrangedCopy& copy);

}  // namespace trireme::ops
