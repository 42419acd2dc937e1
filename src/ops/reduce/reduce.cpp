#include <algorithm>

#include "ops/base/row_parts.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/reduce/block_sums.hpp"
#include "ops/reduce/reduce_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

namespace {

// columns[j] = sum over rows of x[row * stride + j], j < width.
template <typename T>
void sum_strided_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, Accumulate<T>* columns,
                      bool accumulate) {
  const auto& kernels = reduce_kernels().of<Accumulate<T>>();
  if constexpr (is_half<T>) {
    if (!accumulate) std::fill_n(columns, width, 0.0F);
    constexpr std::int64_t widest = piece_elements / 4;
    for (std::int64_t first = 0; first < width; first += widest) {
      const std::int64_t columns_here = std::min(widest, width - first);
      // The kernel adds four rows at a time. With a multiple of four rows in a block, sums do not depend on where threads cut
      // the columns.
      const std::int64_t block_rows = piece_elements / columns_here / 4 * 4;
      for (std::int64_t row = 0; row < rows; row += block_rows) {
        const std::int64_t count = std::min(block_rows, rows - row);
        float block[piece_elements];
        for (std::int64_t i = 0; i < count; ++i) {
          widen(x + (row + i) * stride + first, block + i * columns_here, columns_here);
        }
        kernels.sum_rows(block, count, columns_here, columns_here, columns + first, true);
      }
    }
  } else {
    kernels.sum_rows(x, rows, stride, width, columns, accumulate);
  }
}

// Fewer columns than this are too few to distribute to threads.
constexpr std::int64_t many_columns = 512;

}  // namespace

template <>
template <typename T>
void Reduce<Cpu>::sum_rows(const T* x, std::int64_t rows, std::int64_t width, Accumulate<T>* columns, bool accumulate) {
  if (width >= many_columns) {
    parallel_ranges(width, 16, least_elements / std::max<std::int64_t>(rows, 1) + 1, [&](std::int64_t begin, std::int64_t end) {
      sum_strided_rows(x + begin, rows, width, end - begin, columns + begin, accumulate);
    });
    return;
  }
  // Sums parts of the rows, with several short rows joined into one line, then adds the sums of all parts.
  const std::int64_t line_rows = 1 + 63 / std::max<std::int64_t>(width, 1);
  const std::int64_t line = line_rows * width;
  const std::int64_t lines = rows / line_rows;
  const Tensor<Accumulate<T>, Cpu> sums({num_row_parts(lines), line});
  parallel_row_parts(lines, line, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    sum_strided_rows(x + begin * line, end - begin, line, line, sums.data() + part * line, false);
  });
  sum_strided_rows(sums.data(), sums.shape()[0] * line_rows, width, width, columns, accumulate);
  const std::int64_t summed = lines * line_rows;
  sum_strided_rows(x + summed * width, rows - summed, width, width, columns, true);
}

template <>
template <typename T>
Scalar<double> Reduce<Cpu>::sum_of_squares(const T* x, std::int64_t count) {
  const auto& kernels = reduce_kernels().of<T>();
  return combine_blocks<double>(
      count, [&](std::int64_t begin, std::int64_t part) { return kernels.sum_of_squares(x + begin, part); },
      [](double a, double b) { return a + b; });
}

TRIREME_INSTANTIATE(FLOATS, sum_rows, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, sum_of_squares, Cpu)

}  // namespace trireme::ops
