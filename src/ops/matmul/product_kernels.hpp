#pragma once

#include <cstdint>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

// Cache lines that are prefetched while a strip is multiplied: the memory that will be packed next.
struct LinesAhead {
  const char* row;         // first line of the first row; null: no prefetch
  std::int64_t row_bytes;  // from a row to the next
  std::int64_t rows;
  std::int64_t lines;  // of a row
};

// c[rows, columns] (+)= strip[rows, depth] panels[depth, columns] (+ bias[columns]), at most strip_rows rows.
struct ProductStrip {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;  // at most most_depth
  const float* strip;  // element (i, p) is strip[i * row_step + p], or strip[p * column_step + i] if by_columns
  bool by_columns;
  const float* panels;  // as pack_panels() wrote them, each [depth, panel_columns]
  std::int64_t panel_step;
  const float* bias;  // may be null
  float* c;
  std::int64_t c_stride;
  bool accumulate;
  LinesAhead ahead;
};

// Products of matrices of float. The order of additions depends on the depth alone: products are added in order, with a new
// partial sum after every most_depth.
struct ProductKernels {
  std::int64_t most_depth;     // of a block of a product
  std::int64_t strip_rows;     // rows of c that stay in registers
  std::int64_t panel_columns;  // of b
  std::int64_t row_step;       // of a strip, see ProductStrip
  std::int64_t column_step;
  // Packs the rows [0, rows) of all panels of b, panel_step elements apart. b[p][j] is b[p * stride + j], or b[j * stride + p]
  // if transposed. Missing columns are filled with zeros.
  void (*pack_panels)(const float* b, std::int64_t stride, bool transposed, std::int64_t rows, std::int64_t columns,
                      float* panels, std::int64_t panel_step);
  // Packs strips by columns from a stored [rows, columns]: the elements of strip s for product p begin at strips[s * strip_step
  // + p * column_step].
  void (*pack_strips)(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, std::int64_t strip_columns,
                      float* strips, std::int64_t strip_step);
  void (*multiply)(const ProductStrip& strip);
};

TRIREME_KERNEL_TABLE(ProductKernels, product_kernels)

}  // namespace trireme::ops
