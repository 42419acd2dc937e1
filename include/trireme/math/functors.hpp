#pragma once

#include "trireme/core/export.hpp"
#include "trireme/math/exponential.hpp"

// Every activation as a named functor: its value, and its derivative at the input of the forward pass.
namespace trireme TRIREME_EXPORT {
namespace math {

// Hendrycks, Gimpel 2016, arXiv 1606.08415: x * 0.5 * (1 + tanh(u)) = x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct GeluTanh {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return x * sigmoid(twice_u(x));
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    const auto s = sigmoid_with_slope(twice_u(x));
    const T slope = T(two_root) * (T(1) + T(3 * cubic) * x * x);
    return s.value + x * slope * s.slope;
  }

 private:
  static constexpr double two_root = 1.5957691216057308;  // 2 sqrt(2 / pi)
  static constexpr double cubic = 0.044715;
  template <typename T>
  TRIREME_HOST_DEVICE static T twice_u(T x) {
    return T(two_root) * x * (T(1) + T(cubic) * x * x);
  }
};

// GELU with the exact normal distribution: x * 0.5 * (1 + erf(x / sqrt(2))).
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
    const auto s = sigmoid_with_slope(x);
    return s.value + x * s.slope;
  }
};

struct Sigmoid {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x) {
    return sigmoid(x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x) {
    return sigmoid_with_slope(x).slope;
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

// x above 0, slope * x below. Maas, Hannun, Ng 2013.
template <typename T>
struct LeakyRelu {
  T slope;

  TRIREME_HOST_DEVICE T value(T x) const { return x > T(0) ? x : slope * x; }
  TRIREME_HOST_DEVICE T derivative(T x) const { return x > T(0) ? T(1) : slope; }
};

// log(1 + exp(beta * x)) / beta, or x itself if beta * x is above the threshold.
template <typename T>
struct Softplus {
  T beta;
  T threshold;

  TRIREME_HOST_DEVICE T value(T x) const {
    const T u = beta * x;
    return u > threshold ? x : ((u > T(0) ? u : T(0)) + log1p(exp(-absolute(u)))) / beta;
  }
  TRIREME_HOST_DEVICE T derivative(T x) const { return beta * x > threshold ? T(1) : sigmoid(beta * x); }
};

// Losses of one element x against its target t, and their derivatives with respect to x.
struct SquaredError {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x, T t) {
    return (x - t) * (x - t);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x, T t) {
    return T(2) * (x - t);
  }
};

// -(weight * t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))), without overflow for any x.
template <typename T>
struct BinaryCrossEntropy {
  T positive_weight;

  TRIREME_HOST_DEVICE T value(T x, T t) const {
    const T below = (x < T(0) ? -x : T(0)) + log1p(exp(-absolute(x)));  // -log(sigmoid(x))
    return (T(1) - t) * x + (T(1) + (positive_weight - T(1)) * t) * below;
  }
  TRIREME_HOST_DEVICE T derivative(T x, T t) const { return (T(1) - t) - (T(1) + (positive_weight - T(1)) * t) * sigmoid(-x); }
};

// |x - t|; the derivative is 0 if x and t are equal.
struct AbsoluteError {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x, T t) {
    return absolute(x - t);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x, T t) {
    const T difference = x - t;
    return difference > T(0) ? T(1) : difference < T(0) ? T(-1) : difference;
  }
};

// (x - t)^2 / 2 if |x - t| <= delta, otherwise delta * (|x - t| - delta / 2) (Huber 1964).
template <typename T>
struct Huber {
  T delta;

  TRIREME_HOST_DEVICE T value(T x, T t) const {
    const T distance = absolute(x - t);
    return distance <= delta ? T(0.5) * distance * distance : delta * (distance - T(0.5) * delta);
  }
  TRIREME_HOST_DEVICE T derivative(T x, T t) const {
    const T difference = x - t;
    return difference > delta ? delta : difference < -delta ? -delta : difference;
  }
};

// The Huber loss with delta = beta, divided by beta; the absolute error if beta is 0 (Girshick 2015, arXiv 1504.08083).
template <typename T>
struct SmoothL1 {
  T beta;

  TRIREME_HOST_DEVICE T value(T x, T t) const {
    const T distance = absolute(x - t);
    return distance < beta ? T(0.5) * distance * distance / beta : distance - T(0.5) * beta;
  }
  TRIREME_HOST_DEVICE T derivative(T x, T t) const {
    return absolute(x - t) < beta ? (x - t) / beta : AbsoluteError::derivative(x, t);
  }
};

// Focal loss (Lin et al. 2017, arXiv 1708.02002): balance * wrong^gamma * binary cross-entropy of the probability sigmoid(x).
// wrong is the probability of the wrong class. balance is alpha for a target of 1, 1 - alpha for a target of 0, and 1 if alpha
// is negative.
template <typename T>
struct Focal {
  T alpha;
  T gamma;

  TRIREME_HOST_DEVICE T value(T x, T t) const { return balance(t) * raised(wrong(x, t), gamma) * cross_entropy(x, t); }
  TRIREME_HOST_DEVICE T derivative(T x, T t) const {
    const T p = sigmoid(x);
    const T q = wrong(x, t);
    const T of_wrong = gamma * raised(q, gamma - T(1)) * (T(1) - T(2) * t) * p * sigmoid(-x);
    const T of_factor = gamma == T(0) || q == T(0) ? T(0) : of_wrong * cross_entropy(x, t);
    return balance(t) * (of_factor + raised(q, gamma) * (p - t));
  }

 private:
  TRIREME_HOST_DEVICE T balance(T t) const { return alpha < T(0) ? T(1) : alpha * t + (T(1) - alpha) * (T(1) - t); }
  TRIREME_HOST_DEVICE static T wrong(T x, T t) { return sigmoid(x) * (T(1) - t) + sigmoid(-x) * t; }
  TRIREME_HOST_DEVICE static T raised(T q, T exponent) {
    return exponent == T(0) ? T(1) : q == T(0) ? T(0) : exp(exponent * log(q));
  }
  TRIREME_HOST_DEVICE static T cross_entropy(T x, T t) { return BinaryCrossEntropy<T>{T(1)}.value(x, t); }
};

template <typename T>
TRIREME_HOST_DEVICE T zero_or_nan(T x) {
  return x == x ? T(0) : x;
}

// t * (log(t) - x) for a log-probability x and a probability t. 0 if t is 0, even if x is infinite; NaN if t is negative.
struct KlDivergence {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x, T t) {
    return t == T(0) ? zero_or_nan(x) : t * (log(t) - x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T, T t) {
    return -t;
  }
};

// KlDivergence for a target that is a log-probability too.
struct KlDivergenceLogTarget {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x, T t) {
    const T probability = exp(t);
    return probability == T(0) ? zero_or_nan(x) : probability * (t - x);
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T, T t) {
    return -exp(t);
  }
};

}  // namespace math
}  // namespace trireme
