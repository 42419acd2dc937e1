#include "ops/reduce/reduce_kernels.hpp"

#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void sum_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, T* columns, bool accumulate) {
  std::int64_t row = 0;
  if (!accumulate) {
    for (std::int64_t j = 0; j < width; ++j) columns[j] = 0;
  }
  for (; row + 4 <= rows; row += 4) {
    const T* first = x + row * stride;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      columns[j] += (first[j] + first[j + stride]) + (first[j + 2 * stride] + first[j + 3 * stride]);
    }
  }
  for (; row < rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) columns[j] += x[row * stride + j];
  }
}

// `lanes` independent sums hide the latency of an addition.
constexpr std::int64_t lanes = 32;

template <typename T>
double sum_of_squares(const T* x, std::int64_t count) {
  double sums[lanes] = {};
  std::int64_t i = 0;
  const auto square = [](T element) { return static_cast<double>(element) * static_cast<double>(element); };
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += square(x[i + lane]);
  }
  for (; i < count; ++i) sums[0] += square(x[i]);
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <typename T>
constexpr ReduceKernels<T> kernels{sum_rows<T>, sum_of_squares<T>};

}  // namespace

const KernelTable<ReduceKernels> reduce_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
