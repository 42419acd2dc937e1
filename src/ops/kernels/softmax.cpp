#include "ops/kernels/softmax.hpp"

#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
T log_sum_exp(const T* x, std::int64_t count) {
  T largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < count; ++j) largest = x[j] > largest ? x[j] : largest;
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += math::exp(x[j] - largest);
  return largest + math::log(sum);
}

template <typename T>
void softmax(const T* x, T log_sum_exp, T scale, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) y[j] = scale * math::exp(x[j] - log_sum_exp);
}

template <typename T>
constexpr SoftmaxKernels<T> kernels{log_sum_exp<T>, softmax<T>};

}  // namespace

const KernelTable<SoftmaxKernels> softmax_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
