#include "ops/reduce/softmax_kernels.hpp"

#include <algorithm>
#include <limits>

#include "ops/base/vector.hpp"
#include "ops/base/write.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
T largest_of(const T* x, std::int64_t count) {
  T largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < count; ++j) largest = x[j] > largest ? x[j] : largest;
  return largest;
}

// Likewise, but never -infinity, because -infinity - -infinity is NaN. The sum of a row of -infinity is 0.
template <typename T>
T largest_finite_of(const T* x, std::int64_t count) {
  const T largest = largest_of(x, count);
  return largest < std::numeric_limits<T>::lowest() ? std::numeric_limits<T>::lowest() : largest;
}

template <typename T>
Exponentials<T> exponentials(const T* x, std::int64_t count) {
  const T largest = largest_finite_of(x, count);
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += math::exp(x[j] - largest);
  return {largest, sum};
}

// Sums in blocks that are short enough to be summed in T.
template <bool weighted, typename T>
Exponentials<T> exponentials_and_sum_of(const T* x, const T* class_weight, std::int64_t count, double& sum) {
  constexpr std::int64_t block = 1024;
  const T largest = largest_finite_of(x, count);
  sum = 0;
  T exponentials = 0;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t end = std::min(first + block, count);
    T exponentials_here = 0;
    T below_here = 0;
#pragma omp simd reduction(+ : exponentials_here, below_here)
    for (std::int64_t j = first; j < end; ++j) {
      const T difference = x[j] - largest;
      below_here += weighted ? class_weight[j] * difference : difference;
      exponentials_here += math::exp(difference);
    }
    sum += static_cast<double>(below_here);
    exponentials += exponentials_here;
  }
  return {largest, exponentials};
}

template <typename T>
Exponentials<T> exponentials_and_sum(const T* x, const T* class_weight, std::int64_t count, double& sum) {
  return class_weight == nullptr ? exponentials_and_sum_of<false>(x, class_weight, count, sum)
                                 : exponentials_and_sum_of<true>(x, class_weight, count, sum);
}

template <typename T>
void softmax(const T* x, T largest, T scale, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) y[j] = scale * math::exp(x[j] - largest);
}

template <typename T>
void smoothed_softmax(const T* x, T largest, T scale, T share, const T* class_weight, T* y, std::int64_t count) {
  if (class_weight == nullptr) {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) y[j] = scale * math::exp(x[j] - largest) - share;
    return;
  }
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) y[j] = scale * math::exp(x[j] - largest) - share * class_weight[j];
}

template <typename T>
double weighted_sum(const T* x, T largest, const T* class_weight, std::int64_t count) {
  double sum = 0;
  if (class_weight == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(x[j] - largest);
    return sum;
  }
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(x[j] - largest) * static_cast<double>(class_weight[j]);
  return sum;
}

// Subtracts the largest element and the logarithm of the sum one after the other: their sum would lose digits if x is large.
template <typename T>
void probabilities(const T* x, T* y, std::int64_t count) {
  const T largest = largest_of(x, count);
  const T share = T(1) / sum_of<T>(count, [=](std::int64_t j) { return y[j] = math::exp(x[j] - largest); });
  write(y, count, false, [=](std::int64_t j) { return share * y[j]; });
}

template <typename T>
void log_probabilities(const T* x, T* y, std::int64_t count) {
  const T largest = largest_of(x, count);
  const T log_sum = math::log(sum_of<T>(count, [=](std::int64_t j) { return math::exp(x[j] - largest); }));
  write(y, count, false, [=](std::int64_t j) { return (x[j] - largest) - log_sum; });
}

template <typename T>
void softmax_backward(const T* y, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  const T total = sum_of<T>(count, [=](std::int64_t j) { return y[j] * dy[j]; });
  write(dx, count, accumulate, [=](std::int64_t j) { return y[j] * (dy[j] - total); });
}

template <typename T>
void log_softmax_backward(const T* y, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  const T total = sum_of<T>(count, [=](std::int64_t j) { return dy[j]; });
  write(dx, count, accumulate, [=](std::int64_t j) { return dy[j] - math::exp(y[j]) * total; });
}

template <typename T>
constexpr SoftmaxKernels<T> kernels{exponentials<T>,      exponentials_and_sum<T>, softmax<T>,
                                    smoothed_softmax<T>,  weighted_sum<T>,         probabilities<T>,
                                    log_probabilities<T>, softmax_backward<T>,     log_softmax_backward<T>};

}  // namespace

const KernelTable<SoftmaxKernels> softmax_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
