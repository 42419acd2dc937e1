#include "ops/kernels/norm.hpp"

#include "ops/kernels/vector.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// The mean first, then the squares of the differences: exact enough also for rows far from zero.
template <typename T>
void layer_norm(const LayerNormRows<T>& pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = pass.width;
  const T share = T(1) / static_cast<T>(width);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    T total;
    if (pass.residual != nullptr) {
      const T* residual = pass.residual + row * width;
      T* x_sum = pass.x_sum + row * width;
      total = sum_of<T>(width, [=](std::int64_t j) { return x_sum[j] = x[j] + residual[j]; });
      x = x_sum;
    } else {
      total = sum_of<T>(width, [=](std::int64_t j) { return x[j]; });
    }
    const T mean = total * share;
    const T squares = sum_of<T>(width, [=](std::int64_t j) { return (x[j] - mean) * (x[j] - mean); });
    const T rstd = T(1) / math::square_root(squares * share + pass.epsilon);
    pass.mean[row] = mean;
    pass.rstd[row] = rstd;
    T* y = pass.y + row * width;
    const T* weight = pass.weight;
    const T* bias = pass.bias;
    if (weight != nullptr && bias != nullptr) {
#pragma omp simd
      for (std::int64_t j = 0; j < width; ++j) y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
    } else {
#pragma omp simd
      for (std::int64_t j = 0; j < width; ++j) {
        const T scaled = (x[j] - mean) * rstd * (weight != nullptr ? weight[j] : T(1));
        y[j] = bias != nullptr ? scaled + bias[j] : scaled;
      }
    }
  }
}

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)).
template <typename T>
void layer_norm_backward(const LayerNormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight, T* dbias) {
  const std::int64_t width = pass.width;
  const T share = T(1) / static_cast<T>(width);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    const T* dy = pass.dy + row * width;
    T* dx = pass.dx + row * width;
    const T* weight = pass.weight;
    const T rstd = pass.rstd[row];
    const T mean = pass.mean[row];
    T sum_g = 0;
    T sum_gn = 0;
#pragma omp simd reduction(+ : sum_g, sum_gn)
    for (std::int64_t j = 0; j < width; ++j) {
      const T n = (x[j] - mean) * rstd;
      const T g = weight != nullptr ? dy[j] * weight[j] : dy[j];
      sum_g += g;
      sum_gn += g * n;
      dweight[j] += dy[j] * n;
      dbias[j] += dy[j];
    }
    const T average_g = sum_g * share;
    const T average_gn = sum_gn * share;
    const bool accumulate = pass.accumulate_dx;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const T n = (x[j] - mean) * rstd;
      const T g = weight != nullptr ? dy[j] * weight[j] : dy[j];
      const T gradient = rstd * (g - average_g - n * average_gn);
      dx[j] = accumulate ? dx[j] + gradient : gradient;
    }
  }
}

template <typename T>
constexpr NormKernels<T> kernels{layer_norm<T>, layer_norm_backward<T>};

}  // namespace

const KernelTable<NormKernels> norm_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
