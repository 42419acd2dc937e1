#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

template <typename T>
T inverse_sqrt(T x) {
  return T(1) / static_cast<T>(__builtin_sqrt(static_cast<double>(x)));
}

template <typename T>
void forward(const typename Norm<T>::Forward& pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = pass.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    T sum = 0;
    if (pass.residual != nullptr) {
      const T* residual = pass.residual + row * width;
      T* x_sum = pass.x_sum + row * width;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < width; ++i) {
        const T value = x[i] + residual[i];
        x_sum[i] = value;
        sum += value;
      }
      x = x_sum;
    } else {
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < width; ++i) sum += x[i];
    }
    const T mean = sum / static_cast<T>(width);
    T squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const T rstd = inverse_sqrt(squares / static_cast<T>(width) + pass.epsilon);
    pass.mean[row] = mean;
    pass.rstd[row] = rstd;
    T* y = pass.y + row * width;
    const T* weight = pass.weight;
    const T* bias = pass.bias;
    if (weight != nullptr && bias != nullptr) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    } else {
      for (std::int64_t i = 0; i < width; ++i) {
        y[i] = (x[i] - mean) * rstd * (weight != nullptr ? weight[i] : T(1)) + (bias != nullptr ? bias[i] : T(0));
      }
    }
  }
}

template <typename T>
void backward(const typename Norm<T>::Backward& pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = pass.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* x = pass.x + row * width;
    const T* dy = pass.dy + row * width;
    T* dx = pass.dx + row * width;
    const T mean = pass.mean[row];
    const T rstd = pass.rstd[row];
    const T* weight = pass.weight;
    T sum = 0;         // of g = dy * weight
    T projection = 0;  // of g * normalized x
    if (weight != nullptr) {
#pragma omp simd reduction(+ : sum, projection)
      for (std::int64_t i = 0; i < width; ++i) {
        const T g = dy[i] * weight[i];
        sum += g;
        projection += g * ((x[i] - mean) * rstd);
      }
    } else {
#pragma omp simd reduction(+ : sum, projection)
      for (std::int64_t i = 0; i < width; ++i) {
        sum += dy[i];
        projection += dy[i] * ((x[i] - mean) * rstd);
      }
    }
    sum /= static_cast<T>(width);
    projection /= static_cast<T>(width);
    if (pass.dweight != nullptr && pass.dbias != nullptr) {
      T* dweight = pass.dweight;
      T* dbias = pass.dbias;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        dweight[i] += dy[i] * ((x[i] - mean) * rstd);
        dbias[i] += dy[i];
      }
    } else if (pass.dweight != nullptr) {
      for (std::int64_t i = 0; i < width; ++i) pass.dweight[i] += dy[i] * ((x[i] - mean) * rstd);
    } else if (pass.dbias != nullptr) {
      for (std::int64_t i = 0; i < width; ++i) pass.dbias[i] += dy[i];
    }
    const T kept = pass.accumulate_dx ? T(1) : T(0);
    if (weight != nullptr && pass.accumulate_dx) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        dx[i] += rstd * (dy[i] * weight[i] - sum - (x[i] - mean) * rstd * projection);
      }
    } else {
      for (std::int64_t i = 0; i < width; ++i) {
        const T g = weight != nullptr ? dy[i] * weight[i] : dy[i];
        const T value = rstd * (g - sum - (x[i] - mean) * rstd * projection);
        dx[i] = kept != T(0) ? dx[i] + value : value;
      }
    }
  }
}

}  // namespace

extern const Norm<float> norm_f32{forward<float>, backward<float>};
extern const Norm<double> norm_f64{forward<double>, backward<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
