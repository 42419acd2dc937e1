#pragma once

#include <cstdint>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

// Lines of memory that are asked for while a strip is multiplied, one after the other: what will be copied next.
struct LinesAhead {
  const char* row;         // its first line; null: nothing is asked for
  std::int64_t row_bytes;  // from a row to the next
  std::int64_t rows;
  std::int64_t lines;  // of a row
};

// c[rows, columns] (+)= strip[rows, depth] panels[depth, columns] (+ bias[columns]), rows at most strip_rows of the kernels.
struct ProductStrip {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;  // at most most_depth of the kernels
  const float* strip;  // element (i, p) is strip[i * row_step + p], by_columns strip[p * column_step + i]
  bool by_columns;
  const float* panels;  // as pack_panels() wrote them, each [depth, panel_columns]
  std::int64_t panel_step;
  const float* bias;  // may be null
  float* c;
  std::int64_t c_stride;
  bool accumulate;
  LinesAhead ahead;
};

// Products of matrices of float. The sum of an element depends on the depth alone: it begins anew after every most_depth
// products, and within them goes in order.
struct ProductKernels {
  std::int64_t most_depth;     // of a block of a product
  std::int64_t strip_rows;     // of c, which stay in registers
  std::int64_t panel_columns;  // of b
  std::int64_t row_step;       // of a strip, see there
  std::int64_t column_step;
  // Rows [0, rows) of all panels of b, the first at `panels` and each panel_step elements after the one before: b[p][j] is
  // b[p * stride + j], of a transposed one b[j * stride + p]. Zeros where there are no more columns.
  void (*pack_panels)(const float* b, std::int64_t stride, bool transposed, std::int64_t rows, std::int64_t columns,
                      float* panels, std::int64_t panel_step);
  // Strips by columns of a stored [rows, columns]: columns c of strip s at strips[s * strip_step + p * column_step].
  void (*pack_strips)(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, std::int64_t strip_columns,
                      float* strips, std::int64_t strip_step);
  void (*multiply)(const ProductStrip& strip);
};

TRIREME_KERNEL_TABLE(ProductKernels, product_kernels)

}  // namespace trireme::ops
