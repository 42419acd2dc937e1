#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

template <typename T>
void log_sum_exp(const T* x, std::int64_t rows, std::int64_t width, T* result) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* values = x + row * width;
    T largest = values[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < width; ++i) largest = values[i] > largest ? values[i] : largest;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += math::exp(values[i] - largest);
    result[row] = largest + static_cast<T>(__builtin_log(static_cast<double>(sum)));
  }
}

template <typename T>
void normalized(const T* x, T log_sum_exp, T scale, T* y, std::int64_t width) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) y[i] = scale * math::exp(x[i] - log_sum_exp);
}

}  // namespace

extern const Softmax<float> softmax_f32{log_sum_exp<float>, normalized<float>};
extern const Softmax<double> softmax_f64{log_sum_exp<double>, normalized<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
