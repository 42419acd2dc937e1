#pragma once

#include "trireme/math/exponential.hpp"

// More functions of one or two numbers. sin, cos, expm1 and pow call the C library; the others become vector code.
namespace trireme TRIREME_EXPORT {
namespace math {

TRIREME_HOST_DEVICE float sin(float x) { return ::sinf(x); }
TRIREME_HOST_DEVICE double sin(double x) { return ::sin(x); }
TRIREME_HOST_DEVICE float cos(float x) { return ::cosf(x); }
TRIREME_HOST_DEVICE double cos(double x) { return ::cos(x); }
TRIREME_HOST_DEVICE float expm1(float x) { return ::expm1f(x); }
TRIREME_HOST_DEVICE double expm1(double x) { return ::expm1(x); }
TRIREME_HOST_DEVICE float pow(float x, float exponent) { return ::powf(x, exponent); }
TRIREME_HOST_DEVICE double pow(double x, double exponent) { return ::pow(x, exponent); }
TRIREME_HOST_DEVICE float floor(float x) { return __builtin_floorf(x); }
TRIREME_HOST_DEVICE double floor(double x) { return __builtin_floor(x); }
TRIREME_HOST_DEVICE float ceil(float x) { return __builtin_ceilf(x); }
TRIREME_HOST_DEVICE double ceil(double x) { return __builtin_ceil(x); }

// To the nearest whole number, ties to even.
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

// The smaller and the larger one; NaN where one is NaN.
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
