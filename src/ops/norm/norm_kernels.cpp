#include "ops/norm/norm_kernels.hpp"

#include "ops/base/vector.hpp"
#include "ops/base/write.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

enum class Statistic { mean_and_variance, mean_square };

// Computes the mean first, then the squares of the differences from it: accurate also for rows far from zero.
template <Statistic statistic, typename T>
void forward(const NormRows<T>& pass, std::int64_t begin, std::int64_t end) {
  constexpr bool centers = statistic == Statistic::mean_and_variance;
  const std::int64_t width = pass.width;
  const T share = T(1) / static_cast<T>(width);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    T total = 0;
    if (pass.residual != nullptr) {
      const T* residual = pass.residual + row * width;
      T* x_sum = pass.x_sum + row * width;
      total = sum_of<T>(width, [=](std::int64_t j) { return x_sum[j] = x[j] + residual[j]; });
      x = x_sum;
    } else if (centers) {
      total = sum_of<T>(width, [=](std::int64_t j) { return x[j]; });
    }
    const T mean = centers ? total * share : T(0);
    if (centers) pass.mean[row] = mean;
    const T squares = sum_of<T>(width, [=](std::int64_t j) { return (x[j] - mean) * (x[j] - mean); });
    const T rstd = T(1) / math::square_root(squares * share + pass.epsilon);
    pass.rstd[row] = rstd;
    T* y = pass.y + row * width;
    const T* weight = pass.weight;
    const T* bias = pass.bias;
    if (weight != nullptr && bias != nullptr) {
      write(y, width, false, [=](std::int64_t j) { return (x[j] - mean) * rstd * weight[j] + bias[j]; });
    } else if (weight != nullptr) {
      write(y, width, false, [=](std::int64_t j) { return (x[j] - mean) * rstd * weight[j]; });
    } else {
      write(y, width, false, [=](std::int64_t j) { return (x[j] - mean) * rstd + (bias != nullptr ? bias[j] : T(0)); });
    }
  }
}

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)). Without a mean, n is
// x * rstd and there is no average(g).
template <Statistic statistic, typename T>
void backward(const NormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight, T* dbias) {
  constexpr bool centers = statistic == Statistic::mean_and_variance;
  const std::int64_t width = pass.width;
  const T share = T(1) / static_cast<T>(width);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    const T* dy = pass.dy + row * width;
    T* dx = pass.dx + row * width;
    const T* weight = pass.weight;
    const T rstd = pass.rstd[row];
    const T mean = centers ? pass.mean[row] : T(0);
    T sum_g = 0;
    T sum_gn = 0;
#pragma omp simd reduction(+ : sum_g, sum_gn)
    for (std::int64_t j = 0; j < width; ++j) {
      const T n = (x[j] - mean) * rstd;
      const T g = weight != nullptr ? dy[j] * weight[j] : dy[j];
      sum_gn += g * n;
      dweight[j] += dy[j] * n;
      if (centers) {
        sum_g += g;
        dbias[j] += dy[j];
      }
    }
    const T average_g = centers ? sum_g * share : T(0);
    const T average_gn = sum_gn * share;
    write(dx, width, pass.accumulate_dx, [=](std::int64_t j) {
      const T n = (x[j] - mean) * rstd;
      const T g = weight != nullptr ? dy[j] * weight[j] : dy[j];
      return rstd * (g - average_g - n * average_gn);
    });
  }
}

template <Statistic statistic, typename T>
constexpr NormPasses<T> passes{forward<statistic, T>, backward<statistic, T>};
template <typename T>
constexpr NormKernels<T> kernels{passes<Statistic::mean_and_variance, T>, passes<Statistic::mean_square, T>};

}  // namespace

const KernelTable<NormKernels> norm_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
