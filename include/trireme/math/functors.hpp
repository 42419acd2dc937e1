#pragma once

#include "trireme/math/exponential.hpp"

// Every activation as a named functor: its value, and its derivative at the input of the forward pass.
namespace trireme::math {

// Hendrycks, Gimpel 2016, arXiv 1606.08415: x * 0.5 * (1 + tanh(u)) = x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct GeluTanh {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x * sigmoid(twice_u(x));
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const T s = sigmoid(twice_u(x));
    const T slope = T(two_root) * (T(1) + T(3 * cubic) * x * x);
    return s + x * slope * s * (T(1) - s);
  }

 private:
  static constexpr double two_root = 1.5957691216057308;  // 2 sqrt(2 / pi)
  static constexpr double cubic = 0.044715;
  template <typename T>
  TRIREME_HOST_DEVICE static T twice_u(T x) {
    return T(two_root) * x * (T(1) + T(cubic) * x * x);
  }
};

// The same with the exact normal distribution: x * 0.5 * (1 + erf(x / sqrt(2))).
struct GeluErf {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x * distribution(x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    constexpr double inverse_root_two_pi = 0.3989422804014327;
    return distribution(x) + x * T(inverse_root_two_pi) * exp(T(-0.5) * x * x);
  }

 private:
  template <typename T>
  TRIREME_HOST_DEVICE static T distribution(T x) {
    constexpr double inverse_root_two = 0.7071067811865476;
    return T(0.5) * (T(1) + erf(T(inverse_root_two) * x));
  }
};

struct Relu {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x < T(0) ? T(0) : x;
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    return x > T(0) ? T(1) : T(0);
  }
};

// Elfwing, Uchibe, Doya 2017, arXiv 1702.03118: x * sigmoid(x).
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

}  // namespace trireme::math
