#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "trireme/core/host_device.hpp"

// Value and derivative of every elementwise formula, once, for CPU and GPU kernels. Always inlined: kernel files are compiled
// for several instruction sets, and a function that the linker could share between them must not exist.
namespace trireme::math {

// e^x for float, within 2 units in the last place; 0 below -104, infinity above 88.72, nan for nan.
// x = n ln 2 + r, a polynomial in r (coefficients of the Cephes library, Moshier 1989), times 2^n in two steps.
TRIREME_HOST_DEVICE float exp(float x) {
  x = x > 89.0F ? 89.0F : x;
  x = x < -104.0F ? -104.0F : x;
  const float rounder = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341F + rounder;
  const float n = shifted - rounder;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::int32_t exponent = __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, rounder);
  const std::int32_t half = exponent >> 1;
  return p * __builtin_bit_cast(float, (half + 127) << 23) * __builtin_bit_cast(float, (exponent - half + 127) << 23);
}
TRIREME_HOST_DEVICE double exp(double x) { return ::exp(x); }

TRIREME_HOST_DEVICE float sigmoid(float x) { return 1.0F / (1.0F + exp(-x)); }
TRIREME_HOST_DEVICE double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// tanh for float, within 4e-7 of the value relatively: a polynomial below 0.625 (Cephes), 1 - 2 / (e^2x + 1) above.
TRIREME_HOST_DEVICE float tanh(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float square = x * x;
  float p = -5.70498872745e-3F;
  p = p * square + 2.06390887954e-2F;
  p = p * square - 5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square - 3.33332819422e-1F;
  const float small = p * square * x + x;
  const float large = 1.0F - 2.0F / (exp(2.0F * magnitude) + 1.0F);
  return magnitude < 0.625F ? small : (x < 0 ? -large : large);
}
TRIREME_HOST_DEVICE double tanh(double x) { return ::tanh(x); }

// erf for float, within 3e-7 absolutely (Abramowitz, Stegun 7.1.26).
TRIREME_HOST_DEVICE float erf(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float t = 1.0F / (1.0F + 0.3275911F * magnitude);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float value = 1.0F - p * t * exp(-magnitude * magnitude);
  return x < 0 ? -value : value;
}
TRIREME_HOST_DEVICE double erf(double x) { return ::erf(x); }

// Each activation: value(x), and derivative(x) at the input of the forward pass.

struct Relu {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x > T(0) ? x : T(0);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    return x > T(0) ? T(1) : T(0);
  }
};

struct Sigmoid {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return sigmoid(x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const T s = sigmoid(x);
    return s * (T(1) - s);
  }
};

struct Tanh {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return tanh(x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const T t = tanh(x);
    return T(1) - t * t;
  }
};

struct Silu {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x * sigmoid(x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const T s = sigmoid(x);
    return s + x * s * (T(1) - s);
  }
};

// 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3); written as x sigmoid(2 u), which is the same.
// Hendrycks, Gimpel 2016, arXiv 1606.08415.
struct GeluTanh {
  template <typename T>
  static constexpr T twice_sqrt_2_over_pi = T(1.5957691216057307117597842397375);
  template <typename T>
  static constexpr T cubic = T(0.044715);

  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x * sigmoid(twice_sqrt_2_over_pi<T> * x * (T(1) + cubic<T> * x * x));
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const T square = cubic<T> * x * x;
    const T s = sigmoid(twice_sqrt_2_over_pi<T> * x * (T(1) + square));
    return s + x * s * (T(1) - s) * twice_sqrt_2_over_pi<T> * (T(1) + T(3) * square);
  }
};

// x Phi(x), Phi the normal distribution function.
struct GeluErf {
  template <typename T>
  static constexpr T inverse_sqrt_2 = T(0.70710678118654752440084436210485);
  template <typename T>
  static constexpr T inverse_sqrt_2_pi = T(0.39894228040143267793994605993438);

  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return T(0.5) * x * (T(1) + erf(x * inverse_sqrt_2<T>));
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    return T(0.5) * (T(1) + erf(x * inverse_sqrt_2<T>)) + x * inverse_sqrt_2_pi<T> * exp(T(-0.5) * x * x);
  }
};

}  // namespace trireme::math
