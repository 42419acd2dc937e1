#pragma once

#include <math.h>

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

// exp, tanh, erf and the logistic function without branches or tables, so that loops over them can be vectorized. The float
// versions are implemented here; tests/math checks their errors. log, log1p and all double versions call the C library.
namespace trireme TRIREME_EXPORT {
namespace math {

TRIREME_HOST_DEVICE float absolute(float x) { return __builtin_fabsf(x); }
TRIREME_HOST_DEVICE double absolute(double x) { return __builtin_fabs(x); }
TRIREME_HOST_DEVICE bool is_finite(float x) { return x - x == 0; }
TRIREME_HOST_DEVICE bool is_finite(double x) { return x - x == 0; }
TRIREME_HOST_DEVICE float square_root(float x) { return __builtin_sqrtf(x); }
TRIREME_HOST_DEVICE double square_root(double x) { return __builtin_sqrt(x); }
TRIREME_HOST_DEVICE float log(float x) { return ::logf(x); }
TRIREME_HOST_DEVICE double log(double x) { return ::log(x); }
TRIREME_HOST_DEVICE float log1p(float x) { return ::log1pf(x); }
TRIREME_HOST_DEVICE double log1p(double x) { return ::log1p(x); }

// Within 2 ulp; 0 if the result is below 2^-125, infinity if the result is above the largest float. A GPU computes most of
// exp(x) in one instruction.
TRIREME_HOST_DEVICE float exp(float x) {
#ifdef __CUDA_ARCH__
  return x < -86.643398f ? 0.0f : ::expf(x);
#else
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: adding it leaves the rounded integer in the low bits
  x = x < -87.5f ? -87.5f : x;
  x = x > 89.0f ? 89.0f : x;
  // exp(x) = 2^n exp(r) with |r| <= log(2) / 2; log(2) is split into two parts so that n times the first is exact.
  const float shifted = x * 1.44269504f + shift;
  const float n = shifted - shift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.381447122e-3f;
  q = q * r + 8.36878069e-3f;
  q = q * r + 4.166839415e-2f;
  q = q * r + 1.66665201e-1f;
  q = q * r + 4.999999341e-1f;
  const float y = q * (r * r) + r + 1.0f;
  // Makes 2^(n - 1) from its bits and doubles it, because 2^128 is not a float.
  const auto bits = (__builtin_bit_cast(std::uint32_t, shifted) + 126u) << 23;
  return y * __builtin_bit_cast(float, bits) * 2.0f;
#endif
}
TRIREME_HOST_DEVICE double exp(double x) { return ::exp(x); }

// 1 / (1 + exp(-x)), within 4 ulp; 0 if the result is below 2^-125.
template <typename T>
TRIREME_HOST_DEVICE T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// sigmoid(x) and its derivative. The derivative stays accurate if sigmoid(x) is close to 1.
template <typename T>
struct SigmoidWithSlope {
  T value;
  T slope;
};
template <typename T>
TRIREME_HOST_DEVICE SigmoidWithSlope<T> sigmoid_with_slope(T x) {
  const T small = exp(-absolute(x));
  const T large = T(1) / (T(1) + small);  // sigmoid(|x|)
  return {x < T(0) ? small * large : large, small * large * large};
}

// Within 4 ulp.
TRIREME_HOST_DEVICE float tanh(float x) {
  const float s = x * x;
  float p = -5.70498453e-3f;
  p = p * s + 2.063908495e-2f;
  p = p * s - 5.373971432e-2f;
  p = p * s + 1.333144219e-1f;
  p = p * s - 3.333328194e-1f;
  const float near_zero = p * s * x + x;
  const float t = absolute(x);
  const float elsewhere = 1.0f - 2.0f / (exp(2.0f * t) + 1.0f);
  return t < 0.625f ? near_zero : __builtin_copysignf(elsewhere, x);
}
TRIREME_HOST_DEVICE double tanh(double x) { return ::tanh(x); }

// Within 3 ulp.
TRIREME_HOST_DEVICE float erf(float x) {
  const float s = x * x;
  float p = -5.999404591e-4f;
  p = p * s + 4.994830083e-3f;
  p = p * s - 2.676771979e-2f;
  p = p * s + 1.128184595e-1f;
  p = p * s - 3.761249646e-1f;
  p = p * s + 1.2837915e-1f;
  const float near_zero = p * x + x;
  // 1 - exp(-t q(t)), where t q(t) is close to -log(erfc(t)); from 4 on the result is 1.
  float t = absolute(x);
  t = t > 4.0f ? 4.0f : t;
  float q = -2.141534534e-4f;
  q = q * t + 3.216448663e-3f;
  q = q * t - 2.289511758e-2f;
  q = q * t + 1.052704959e-1f;
  q = q * t + 6.357112532e-1f;
  q = q * t + 1.128516601f;
  const float elsewhere = 1.0f - exp(-t * q);
  return t < 0.92f ? near_zero : __builtin_copysignf(elsewhere, x);
}
TRIREME_HOST_DEVICE double erf(double x) { return ::erf(x); }

}  // namespace math
}  // namespace trireme
