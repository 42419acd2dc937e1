#pragma once

#include "trireme/math/exponential.hpp"

// More functions of one or two numbers. sin, cos, pow and most functions of double call the C library. Loops over the other
// functions can be vectorized. tests/math checks the errors of the float versions.
namespace trireme TRIREME_EXPORT {
namespace math {

TRIREME_HOST_DEVICE float sin(float x) { return ::sinf(x); }
TRIREME_HOST_DEVICE double sin(double x) { return ::sin(x); }
TRIREME_HOST_DEVICE float cos(float x) { return ::cosf(x); }
TRIREME_HOST_DEVICE double cos(double x) { return ::cos(x); }
TRIREME_HOST_DEVICE float pow(float x, float exponent) { return ::powf(x, exponent); }
TRIREME_HOST_DEVICE double pow(double x, double exponent) { return ::pow(x, exponent); }
TRIREME_HOST_DEVICE float floor(float x) { return __builtin_floorf(x); }
TRIREME_HOST_DEVICE double floor(double x) { return __builtin_floor(x); }
TRIREME_HOST_DEVICE float ceil(float x) { return __builtin_ceilf(x); }
TRIREME_HOST_DEVICE double ceil(double x) { return __builtin_ceil(x); }

// Rounds to the nearest integer, ties to even.
TRIREME_HOST_DEVICE float round(float x) { return __builtin_rintf(x); }
TRIREME_HOST_DEVICE double round(double x) { return __builtin_rint(x); }

template <typename T>
TRIREME_HOST_DEVICE bool is_nan(T x) {
  return x != x;
}
template <typename T>
TRIREME_HOST_DEVICE bool is_infinite(T x) {
  return absolute(x) == T(__builtin_huge_val());
}

// exp(x) - 1, within 6 ulp.
TRIREME_HOST_DEVICE float expm1(float x) {
  float p = 2.48015873e-5f;  // 1 / 8!, then 1 / 7! and so on
  p = p * x + 1.98412698e-4f;
  p = p * x + 1.38888889e-3f;
  p = p * x + 8.33333333e-3f;
  p = p * x + 4.16666667e-2f;
  p = p * x + 1.66666667e-1f;
  p = p * x + 0.5f;
  const float near_zero = p * x * x + x;
  const float elsewhere = exp(x) - 1.0f;
  return absolute(x) < 0.5f ? near_zero : elsewhere;
}
TRIREME_HOST_DEVICE double expm1(double x) { return ::expm1(x); }

// log(x), vectorizable, within 2 ulp.
TRIREME_HOST_DEVICE float natural_log(float x) {
  const bool tiny = x < 1.17549435e-38f;  // subnormal, 0 or negative
  const float scaled = tiny ? x * 8388608.0f : x;
  // x = 2^e m with m in [sqrt(1 / 2), sqrt(2)).
  const auto bits = __builtin_bit_cast(std::uint32_t, scaled);  // negative numbers wrap around
  const auto e = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = __builtin_bit_cast(float, bits - (static_cast<std::uint32_t>(e) << 23)) - 1.0f;
  const float n = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
  const float s = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float y = f + (p * f * s - n * 2.12194440e-4f - 0.5f * s) + n * 0.693359375f;
  constexpr float infinity = __builtin_huge_valf();
  const float special = x == 0 ? -infinity : x < 0 ? __builtin_nanf("") : x;
  const bool usual = (x > 0) & (x < infinity);  // & instead of &&: no branch
  return usual ? y : special;
}
TRIREME_HOST_DEVICE double natural_log(double x) { return ::log(x); }

// log(1 + x), vectorizable, within 4 ulp.
TRIREME_HOST_DEVICE float natural_log1p(float x) {
  const float u = 1.0f + x;
  const float quotient = natural_log(u) * (x / (u - 1.0f));  // corrects the rounding error of 1 + x
  const bool itself = (u == 1.0f) | (u == __builtin_huge_valf());
  return itself ? x : quotient;
}
TRIREME_HOST_DEVICE double natural_log1p(double x) { return ::log1p(x); }

// sin(x) and cos(x), vectorizable, for |x| up to 2^28, within 1 ulp. As in fdlibm, the angle is reduced in double.
inline constexpr float largest_angle = 268435456.0f;
namespace detail {
TRIREME_HOST_DEVICE float sine_of_quadrant(float x, int quadrants) {
  const double n = __builtin_rint(static_cast<double>(x) * 6.36619772367581382433e-01);  // 2 / pi
  const double r = static_cast<double>(x) - n * 1.57079631090164184570e+00 - n * 1.58932547735281966916e-08;
  const double s = r * r;
  const double sine =
      r + r * s *
              (-1.66666666416265235595e-01 +
               s * (8.33332938588946317560e-03 + s * (-1.98393348360966317347e-04 + s * 2.71831149398982190640e-06)));
  const double cosine =
      1.0 + s * (-4.99999997251031003120e-01 +
                 s * (4.16666233237390631894e-02 + s * (-1.38867637746099294692e-03 + s * 2.43904487962774090654e-05)));
  const int quadrant = static_cast<int>(n) + quadrants;
  const double size = (quadrant & 1) != 0 ? cosine : sine;
  return static_cast<float>((quadrant & 2) != 0 ? -size : size);
}
}  // namespace detail
TRIREME_HOST_DEVICE float sine(float x) { return detail::sine_of_quadrant(x, 0); }
TRIREME_HOST_DEVICE float cosine(float x) { return detail::sine_of_quadrant(x, 1); }

// The smaller and the larger of two numbers; NaN if one is NaN.
template <typename T>
TRIREME_HOST_DEVICE T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <typename T>
TRIREME_HOST_DEVICE T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}

}  // namespace math
}  // namespace trireme
