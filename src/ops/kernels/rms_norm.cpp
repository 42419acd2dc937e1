#include "ops/kernels/rms_norm.hpp"

#include "ops/kernels/vector.hpp"
#include "ops/kernels/write.hpp"
#include "trireme/math/exponential.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void rms_norm(const RmsNormRows<T>& pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = pass.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    if (pass.residual != nullptr) {
      const T* residual = pass.residual + row * width;
      const T* addend = x;
      T* x_sum = pass.x_sum + row * width;
      write(x_sum, width, false, [=](std::int64_t j) { return addend[j] + residual[j]; });
      x = x_sum;
    }
    const T squares = sum_of<T>(width, [=](std::int64_t j) { return x[j] * x[j]; });
    const T rstd = T(1) / math::square_root(squares / static_cast<T>(width) + pass.epsilon);
    pass.rstd[row] = rstd;
    const T* weight = pass.weight;
    if (weight != nullptr) {
      write(pass.y + row * width, width, false, [=](std::int64_t j) { return x[j] * rstd * weight[j]; });
    } else {
      write(pass.y + row * width, width, false, [=](std::int64_t j) { return x[j] * rstd; });
    }
  }
}

// With n = x * rstd and g = dy * weight: dx = rstd * (g - n * average(g * n)).
template <typename T>
void rms_norm_backward(const RmsNormGradientRows<T>& pass, std::int64_t begin, std::int64_t end, T* dweight) {
  const std::int64_t width = pass.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    const T* dy = pass.dy + row * width;
    const T* weight = pass.weight;
    const T rstd = pass.rstd[row];
    T sum_gn = 0;
#pragma omp simd reduction(+ : sum_gn)
    for (std::int64_t j = 0; j < width; ++j) {
      const T n = x[j] * rstd;
      sum_gn += (weight != nullptr ? dy[j] * weight[j] : dy[j]) * n;
      dweight[j] += dy[j] * n;
    }
    const T average_gn = sum_gn / static_cast<T>(width);
    write(pass.dx + row * width, width, pass.accumulate_dx, [=](std::int64_t j) {
      const T g = weight != nullptr ? dy[j] * weight[j] : dy[j];
      return rstd * (g - x[j] * rstd * average_gn);
    });
  }
}

template <typename T>
constexpr RmsNormKernels<T> kernels{rms_norm<T>, rms_norm_backward<T>};

}  // namespace

const KernelTable<RmsNormKernels> rms_norm_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
