#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

template <typename T>
void sum_rows(const T* x, std::int64_t rows, std::int64_t width, std::int64_t stride, T* columns, bool accumulate) {
  if (!accumulate) {
    for (std::int64_t column = 0; column < width; ++column) columns[column] = T(0);
  }
  std::int64_t row = 0;
  for (; row + 8 <= rows; row += 8) {
    const T* r = x + row * stride;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      columns[c] += ((r[c] + r[c + stride]) + (r[c + 2 * stride] + r[c + 3 * stride])) +
                    ((r[c + 4 * stride] + r[c + 5 * stride]) + (r[c + 6 * stride] + r[c + 7 * stride]));
    }
  }
  for (; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) columns[c] += x[row * stride + c];
  }
}

template <typename T>
double sum(const T* x, std::int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t index = 0; index < count; ++index) total += static_cast<double>(x[index]);
  return total;
}

template <typename T>
double sum_of_squares(const T* x, std::int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::int64_t index = 0; index < count; ++index) total += static_cast<double>(x[index]) * static_cast<double>(x[index]);
  return total;
}

template <typename T>
double max_abs(const T* x, std::int64_t count) {
  T largest = 0;
  T poison = 0;  // 0 * x is nan for nan and inf: a maximum alone would pass over nan
#pragma omp simd reduction(max : largest) reduction(+ : poison)
  for (std::int64_t index = 0; index < count; ++index) {
    const T magnitude = x[index] < 0 ? -x[index] : x[index];
    largest = magnitude > largest ? magnitude : largest;
    poison += T(0) * x[index];
  }
  return poison == 0 ? static_cast<double>(largest) : static_cast<double>(largest + poison);
}

}  // namespace

extern const Reduce<float> reduce_f32{sum_rows<float>, sum<float>, sum_of_squares<float>, max_abs<float>};
extern const Reduce<double> reduce_f64{sum_rows<double>, sum<double>, sum_of_squares<double>, max_abs<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
