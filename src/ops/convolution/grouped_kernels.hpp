#pragma once

#include <cstdint>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

// A convolution with many groups computes a vector of channels, a block, at a time. First its pixels are spread: in each block
// a pixel becomes `group` vectors, one for each channel of a group. Lane l of vector v is channel v of the group that channel l
// belongs to. So a place of the kernel is `group` taps, each a product of vectors. Incomplete vectors are filled up with 0. All
// steps are in floats.

struct SpreadPixels {
  const float* from;
  std::int64_t zeros_before;  // pixels of zeros
  std::int64_t pixels;
  std::int64_t zeros_after;
  std::int64_t step;
  std::int64_t channels;
  int group;  // 1, 2 or 4
  float* to;  // pixel after pixel
  std::int64_t block_step;
};

// y[row][column] = bias + the sum over taps t of pixels[offsets[t]][row][column] * weights[t].
struct GroupedRows {
  const float* pixels;  // spread
  std::int64_t step;
  std::int64_t row_step;
  std::int64_t block_step;
  const std::int64_t* offsets;
  const float* weights;  // [block][tap][lane]
  std::int64_t weights_block_step;
  std::int64_t num_taps;
  const float* bias;  // or null
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t channels;
  float* y;
  std::int64_t y_step;
  std::int64_t y_row_step;
};

inline constexpr std::int64_t most_gradient_taps = 10;  // each needs a register for its sum and one for its address

// sums[t] += the sum over rows and columns of taps[t][row][column] * dy[row][column], in one block.
struct GroupedGradient {
  const float* const* taps;
  std::int64_t num_taps;  // at most most_gradient_taps
  std::int64_t step;
  std::int64_t row_step;
  std::int64_t rows;
  std::int64_t columns;
  const float* dy;  // spread with a group of 1, row after row
  float* sums;
};

struct GroupedKernels {
  int lanes;  // of a vector
  void (*spread)(const SpreadPixels& pixels);
  void (*convolve)(const GroupedRows& rows);
  void (*add_gradient)(const GroupedGradient& gradient);
};

TRIREME_KERNEL_TABLE(GroupedKernels, grouped_kernels)

}  // namespace trireme::ops
