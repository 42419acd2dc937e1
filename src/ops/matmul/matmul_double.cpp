#include "ops/matmul/matmul_double.hpp"

#include <algorithm>

#include "ops/base/parallel.hpp"

namespace trireme::ops {
namespace {

// Transposes a matrix [columns, rows] to [rows, columns].
Tensor<double> transposed(const double* matrix, std::int64_t rows, std::int64_t columns) {
  Tensor<double> result({rows, columns});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      result.data()[row * columns + column] = matrix[column * rows + row];
    }
  }
  return result;
}

}  // namespace

void run_matmul(const MatmulShape& shape, const double* a, const double* b, const double* bias, double* c) {
  Tensor<double> plain_a;
  Tensor<double> plain_b;
  if (shape.transpose_a) a = (plain_a = transposed(a, shape.m, shape.k)).data();
  if (shape.transpose_b && !shape.packed_b) b = (plain_b = transposed(b, shape.k, shape.n)).data();
  constexpr std::int64_t depth = 64;  // rows of b that stay in the cache for all rows of c
  parallel_rows(shape.m, shape.n * shape.k, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double* row = c + i * shape.n;
      if (!shape.accumulate) std::fill_n(row, shape.n, 0.0);
      if (shape.bias) std::transform(row, row + shape.n, bias, row, std::plus<>());
    }
    for (std::int64_t first = 0; first < shape.k; first += depth) {
      const std::int64_t last = std::min(first + depth, shape.k);
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t p = first; p < last; ++p) {
          const double factor = a[i * shape.k + p];
          const double* from = b + p * shape.n;
          double* to = c + i * shape.n;
          for (std::int64_t j = 0; j < shape.n; ++j) to[j] += factor * from[j];
        }
      }
    }
  });
}

Tensor<double> pack_b(const MatmulShape& shape, const double* b) {
  if (shape.transpose_b) return transposed(b, shape.k, shape.n);
  Tensor<double> copy({shape.k, shape.n});
  std::copy_n(b, copy.numel(), copy.data());
  return copy;
}

}  // namespace trireme::ops
