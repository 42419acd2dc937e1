#include "ops/kernels/tables.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

// Plain loops: oneDNN has no products in double, and only gradient checks need them.
void run(const double* a, std::int64_t a_row, std::int64_t a_column, const double* b, std::int64_t b_row, std::int64_t b_column,
         double* c, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  for (std::int64_t row = 0; row < m; ++row) {
    double* out = c + row * n;
    for (std::int64_t column = 0; !accumulate && column < n; ++column) out[column] = 0;
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const double factor = a[row * a_row + inner * a_column];
      const double* from = b + inner * b_row;
#pragma omp simd
      for (std::int64_t column = 0; column < n; ++column) out[column] += factor * from[column * b_column];
    }
  }
}

}  // namespace

extern const DoubleMatmul matmul_f64{run};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
