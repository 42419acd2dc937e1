#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/pointwise/pointwise_body.hpp"

// The formulas of ops/pointwise/pointwise.hpp with one operand: the value, and the derivative at x.
namespace trireme::ops {

template <Unary kind>
struct UnaryFormula {
  template <typename T>
  TRIREME_HOST_DEVICE static T value(T x, T first, T second) {
    static_cast<void>(first);
    static_cast<void>(second);
    if constexpr (kind == Unary::abs) return x < T(0) ? negative(x) : x + T(0);
    if constexpr (kind == Unary::neg) return negative(x);
    if constexpr (kind == Unary::sign) return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
    if constexpr (kind == Unary::clamp) return math::minimum(math::maximum(x, first), second);
    if constexpr (kind == Unary::square) return squared(x);
    if constexpr (std::is_floating_point_v<T>) {
      if constexpr (kind == Unary::exp) return math::exp(x);
      if constexpr (kind == Unary::expm1) return math::expm1(x);
      if constexpr (kind == Unary::log) return math::natural_log(x);
      if constexpr (kind == Unary::log1p) return math::natural_log1p(x);
      if constexpr (kind == Unary::sqrt) return math::square_root(x);
      if constexpr (kind == Unary::rsqrt) return T(1) / math::square_root(x);
      if constexpr (kind == Unary::reciprocal) return T(1) / x;
      if constexpr (kind == Unary::sin) return math::sin(x);
      if constexpr (kind == Unary::cos) return math::cos(x);
      if constexpr (kind == Unary::erf) return math::erf(x);
      if constexpr (kind == Unary::floor) return math::floor(x);
      if constexpr (kind == Unary::ceil) return math::ceil(x);
      if constexpr (kind == Unary::round) return math::round(x);
      if constexpr (kind == Unary::elu) return x > T(0) ? x : first * math::expm1(x);
      if constexpr (kind == Unary::selu) return T(1.0507009873554805) * (x > T(0) ? x : T(1.6732632423543772) * math::expm1(x));
      if constexpr (kind == Unary::mish) return x * tanh_softplus(x);
      if constexpr (kind == Unary::hardswish) return x * within(x + T(3), T(6)) / T(6);
      if constexpr (kind == Unary::hardsigmoid) return within(x + T(3), T(6)) / T(6);
      if constexpr (kind == Unary::relu6) return within(x, T(6));
      if constexpr (kind == Unary::softsign) return x / (T(1) + math::absolute(x));
      if constexpr (kind == Unary::logsigmoid) return below(x, T(0)) - math::natural_log1p(math::exp(-math::absolute(x)));
    }
  }

  template <typename T>
  TRIREME_HOST_DEVICE static T derivative(T x, T first, T second) {
    static_cast<void>(first);
    static_cast<void>(second);
    if constexpr (kind == Unary::abs) return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
    if constexpr (kind == Unary::neg) return T(-1);
    if constexpr (kind == Unary::clamp) return x > first && x < second ? T(1) : T(0);
    if constexpr (kind == Unary::square) return T(2) * x;
    if constexpr (kind == Unary::exp) return math::exp(x);
    if constexpr (kind == Unary::expm1) return math::exp(x);
    if constexpr (kind == Unary::log) return T(1) / x;
    if constexpr (kind == Unary::log1p) return T(1) / (x + T(1));
    if constexpr (kind == Unary::sqrt) return T(0.5) / math::square_root(x);
    if constexpr (kind == Unary::rsqrt) return T(-0.5) / (x * math::square_root(x));
    if constexpr (kind == Unary::reciprocal) return T(-1) / (x * x);
    if constexpr (kind == Unary::sin) return math::cos(x);
    if constexpr (kind == Unary::cos) return -math::sin(x);
    if constexpr (kind == Unary::erf) return T(1.1283791670955126) * math::exp(-x * x);  // 2 / sqrt(pi)
    if constexpr (kind == Unary::elu) return x > T(0) ? T(1) : first * math::exp(x);
    if constexpr (kind == Unary::selu) return T(1.0507009873554805) * (x > T(0) ? T(1) : T(1.6732632423543772) * math::exp(x));
    if constexpr (kind == Unary::mish) {
      const T t = tanh_softplus(x);
      return t + x * (T(1) - t * t) * math::sigmoid(x);
    }
    if constexpr (kind == Unary::hardswish) return x <= T(-3) ? T(0) : x < T(3) ? x / T(3) + T(0.5) : T(1);
    if constexpr (kind == Unary::hardsigmoid) return x > T(-3) && x < T(3) ? T(1) / T(6) : T(0);
    if constexpr (kind == Unary::relu6) return x > T(0) && x < T(6) ? T(1) : T(0);
    if constexpr (kind == Unary::softsign) {
      const T divisor = T(1) + math::absolute(x);
      return T(1) / (divisor * divisor);
    }
    if constexpr (kind == Unary::logsigmoid) return math::sigmoid(-x);
    return T(0);  // derivative of step functions
  }

 private:
  template <typename T>
  TRIREME_HOST_DEVICE static T negative(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T squared(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) * static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return x * x;
    }
  }
  // x clamped to [0, highest]; NaN stays NaN.
  template <typename T>
  TRIREME_HOST_DEVICE static T within(T x, T highest) {
    return x < T(0) ? T(0) : x > highest ? highest : x;
  }
  template <typename T>
  TRIREME_HOST_DEVICE static T below(T x, T highest) {
    return x > highest ? highest : x;
  }
  // tanh(log(1 + exp(x))) = n / (n + 2) with n = exp(x) (exp(x) + 2), without overflow.
  template <typename T>
  TRIREME_HOST_DEVICE static T tanh_softplus(T x) {
    const T e = math::exp(-math::absolute(x));
    const T numerator = x > T(0) ? T(1) + T(2) * e : e * (e + T(2));
    return numerator / (numerator + T(2) * (x > T(0) ? e * e : T(1)));
  }
};

#define TRIREME_VISIT(name) \
  case Unary::name: return visit(UnaryFormula<Unary::name>());
template <typename Visit>
TRIREME_HOST_DEVICE auto with_unary(Unary kind, Visit visit) {
  switch (kind) {
    TRIREME_EACH_NUMBER_UNARY(TRIREME_VISIT)
    TRIREME_EACH_FLOAT_UNARY(TRIREME_VISIT)
    TRIREME_VISIT(clamp)
    case Unary::elu: break;
  }
  return visit(UnaryFormula<Unary::elu>());
}

// For integers.
template <typename Visit>
TRIREME_HOST_DEVICE auto with_whole_unary(Unary kind, Visit visit) {
  switch (kind) {
    TRIREME_EACH_NUMBER_UNARY(TRIREME_VISIT)
    default: break;
  }
  return visit(UnaryFormula<Unary::clamp>());
}
#undef TRIREME_VISIT

template <typename T, typename Visit>
TRIREME_HOST_DEVICE auto with_unary_of(Unary kind, Visit visit) {
  if constexpr (std::is_integral_v<T>) {
    return with_whole_unary(kind, visit);
  } else {
    return with_unary(kind, visit);
  }
}

// A thread for each element.
template <typename T>
struct UnaryElement {
  using A = Accumulate<T>;
  Unary kind;
  A first;
  A second;
  const T* x;
  T* y;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const A at = computed(x[i]);
    const A p = first;
    const A q = second;
    y[i] = element_of<T>(with_unary_of<A>(kind, [=](auto formula) { return formula.value(at, p, q); }));
  }
};

template <typename T>
struct UnarySlopeElement {
  using A = Accumulate<T>;
  Unary kind;
  A first;
  A second;
  const T* x;
  const T* dy;
  T* dx;
  bool accumulate;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const A at = computed(x[i]);
    const A p = first;
    const A q = second;
    const A product = computed(dy[i]) * with_unary(kind, [=](auto formula) { return formula.derivative(at, p, q); });
    dx[i] = element_of<T>(accumulate ? computed(dx[i]) + product : product);
  }
};

template <typename T>
struct TestElement {
  FloatTest kind;
  const T* x;
  bool* mask;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { mask[i] = tested(kind, computed(x[i])); }
};

}  // namespace trireme::ops
