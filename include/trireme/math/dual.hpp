#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/math/elementary.hpp"

namespace trireme TRIREME_EXPORT {
namespace math {

// A number with its derivatives in n variables: an expression of Duals gives its value and all derivatives at the same time
// (forward mode of automatic differentiation; Griewank, Walther 2008, chapter 3).
//
//   using Number = Dual<float, 2>;
//   const Number x = Number::variable(3, 0), y = Number::variable(4, 1);
//   const Number z = x * sigmoid(y);  // z.value, z.slope[0], z.slope[1]
//
// Plain numbers can be used with Duals, as constants. select() computes both sides, so that loops can be vectorized; ?: works
// too.
template <typename A, std::size_t n>
struct Dual {
  A value;
  A slope[n == 0 ? 1 : n] = {};

  template <typename Number>
  requires std::is_arithmetic_v<Number> TRIREME_HOST_DEVICE Dual(Number constant) : value(static_cast<A>(constant)) {}

  // Variable `number`: its derivative is 1 with respect to itself and 0 with respect to the other variables.
  TRIREME_HOST_DEVICE static Dual variable(A of, std::size_t number) {
    return made(of, [=](std::size_t k) TRIREME_INLINED { return k == number ? A(1) : A(0); });
  }

  TRIREME_HOST_DEVICE friend Dual operator+(const Dual& a) { return a; }
  TRIREME_HOST_DEVICE friend Dual operator-(const Dual& a) {
    return made(-a.value, [&](std::size_t k) TRIREME_INLINED { return -a.slope[k]; });
  }
  TRIREME_HOST_DEVICE friend Dual operator+(const Dual& a, const Dual& b) {
    return made(a.value + b.value, [&](std::size_t k) TRIREME_INLINED { return a.slope[k] + b.slope[k]; });
  }
  TRIREME_HOST_DEVICE friend Dual operator-(const Dual& a, const Dual& b) {
    return made(a.value - b.value, [&](std::size_t k) TRIREME_INLINED { return a.slope[k] - b.slope[k]; });
  }
  TRIREME_HOST_DEVICE friend Dual operator*(const Dual& a, const Dual& b) {
    return made(a.value * b.value,
                [&](std::size_t k) TRIREME_INLINED { return times(a.slope[k], b.value) + times(b.slope[k], a.value); });
  }
  TRIREME_HOST_DEVICE friend Dual operator/(const Dual& a, const Dual& b) {
    const A quotient = a.value / b.value;
    return made(quotient, [&](std::size_t k) TRIREME_INLINED { return (a.slope[k] - times(b.slope[k], quotient)) / b.value; });
  }
  TRIREME_HOST_DEVICE Dual& operator+=(const Dual& b) { return *this = *this + b; }
  TRIREME_HOST_DEVICE Dual& operator-=(const Dual& b) { return *this = *this - b; }
  TRIREME_HOST_DEVICE Dual& operator*=(const Dual& b) { return *this = *this * b; }
  TRIREME_HOST_DEVICE Dual& operator/=(const Dual& b) { return *this = *this / b; }

  TRIREME_HOST_DEVICE friend bool operator==(const Dual& a, const Dual& b) { return a.value == b.value; }
  TRIREME_HOST_DEVICE friend bool operator!=(const Dual& a, const Dual& b) { return a.value != b.value; }
  TRIREME_HOST_DEVICE friend bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  TRIREME_HOST_DEVICE friend bool operator<=(const Dual& a, const Dual& b) { return a.value <= b.value; }
  TRIREME_HOST_DEVICE friend bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  TRIREME_HOST_DEVICE friend bool operator>=(const Dual& a, const Dual& b) { return a.value >= b.value; }

  TRIREME_HOST_DEVICE friend Dual select(bool condition, const Dual& a, const Dual& b) {
    return made(condition ? a.value : b.value,
                [&](std::size_t k) TRIREME_INLINED { return condition ? a.slope[k] : b.slope[k]; });
  }
  // NaN if an operand is NaN. Each of two equal operands gets half of the derivative.
  TRIREME_HOST_DEVICE friend Dual min(const Dual& a, const Dual& b) {
    return chosen(minimum(a.value, b.value), a.value<b.value, a.value> b.value, a, b);
  }
  TRIREME_HOST_DEVICE friend Dual max(const Dual& a, const Dual& b) {
    return chosen(maximum(a.value, b.value), a.value > b.value, a.value < b.value, a, b);
  }
  TRIREME_HOST_DEVICE friend Dual abs(const Dual& x) {
    return chain(x, absolute(x.value), [&]() TRIREME_INLINED { return x.value > A(0) ? A(1) : x.value < A(0) ? A(-1) : A(0); });
  }
  TRIREME_HOST_DEVICE friend Dual exp(const Dual& x) {
    const A power = math::exp(x.value);
    return chain(x, power, [&]() TRIREME_INLINED { return power; });
  }
  TRIREME_HOST_DEVICE friend Dual expm1(const Dual& x) {
    return chain(x, math::expm1(x.value), [&]() TRIREME_INLINED { return math::exp(x.value); });
  }
  TRIREME_HOST_DEVICE friend Dual log(const Dual& x) {
    return chain(x, natural_log(x.value), [&]() TRIREME_INLINED { return A(1) / x.value; });
  }
  TRIREME_HOST_DEVICE friend Dual log1p(const Dual& x) {
    return chain(x, natural_log1p(x.value), [&]() TRIREME_INLINED { return A(1) / (A(1) + x.value); });
  }
  TRIREME_HOST_DEVICE friend Dual sqrt(const Dual& x) {
    const A root = square_root(x.value);
    return chain(x, root, [&]() TRIREME_INLINED { return A(0.5) / root; });
  }
  TRIREME_HOST_DEVICE friend Dual sin(const Dual& x) {
    return chain(x, math::sin(x.value), [&]() TRIREME_INLINED { return math::cos(x.value); });
  }
  TRIREME_HOST_DEVICE friend Dual cos(const Dual& x) {
    return chain(x, math::cos(x.value), [&]() TRIREME_INLINED { return -math::sin(x.value); });
  }
  TRIREME_HOST_DEVICE friend Dual tanh(const Dual& x) {
    const A t = math::tanh(x.value);
    return chain(x, t, [&]() TRIREME_INLINED { return A(1) - t * t; });
  }
  TRIREME_HOST_DEVICE friend Dual sigmoid(const Dual& x) {
    const auto s = math::sigmoid_with_slope(x.value);
    return chain(x, s.value, [&]() TRIREME_INLINED { return s.slope; });
  }
  TRIREME_HOST_DEVICE friend Dual erf(const Dual& x) {
    return chain(x, math::erf(x.value),
                 [&]() TRIREME_INLINED { return A(1.1283791670955126) * math::exp(-x.value * x.value); });  // 2 / sqrt(pi)
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number> TRIREME_HOST_DEVICE friend Dual pow(const Dual& x, Number exponent) {
    const auto p = static_cast<A>(exponent);
    return chain(x, math::pow(x.value, p),
                 [&]() TRIREME_INLINED { return p == A(0) ? A(0) : p * math::pow(x.value, p - A(1)); });
  }
  // The derivative with respect to the exponent is 0 if x is 0 and the exponent is not negative.
  TRIREME_HOST_DEVICE friend Dual pow(const Dual& x, const Dual& exponent) {
    const A power = math::pow(x.value, exponent.value);
    if constexpr (n == 0) {
      return Dual(power);
    } else {
      const A p = exponent.value;
      const A in_x = p == A(0) ? A(0) : p * math::pow(x.value, p - A(1));
      const A in_exponent = x.value == A(0) && p >= A(0) ? A(0) : power * natural_log(x.value);
      return made(power, [&](std::size_t k)
                             TRIREME_INLINED { return times(x.slope[k], in_x) + times(exponent.slope[k], in_exponent); });
    }
  }

 private:
  // A derivative of 0 stays 0 for every factor, also for infinity. Zeros that the compiler knows cost nothing.
  TRIREME_HOST_DEVICE static A times(A of, A factor) {
    const A product = of * factor;
    return of == A(0) ? A(0) : product;
  }
  template <typename Slope>
  TRIREME_HOST_DEVICE static Dual made(A of, Slope slope) {
    return made(of, slope, std::make_index_sequence<n>());
  }
  template <typename Slope, std::size_t... k>
  TRIREME_HOST_DEVICE static Dual made(A of, [[maybe_unused]] Slope slope, std::index_sequence<k...>) {
    Dual result(of);
    ((result.slope[k] = slope(k)), ...);
    return result;
  }
  // The chain rule for a function of x. derivative() is called only if there are variables.
  template <typename Derivative>
  TRIREME_HOST_DEVICE static Dual chain(const Dual& x, A of, Derivative derivative) {
    if constexpr (n == 0) {
      return Dual(of);
    } else {
      const A factor = derivative();
      return made(of, [&](std::size_t k) TRIREME_INLINED { return times(x.slope[k], factor); });
    }
  }
  TRIREME_HOST_DEVICE static Dual chosen(A of, bool first, bool second, const Dual& a, const Dual& b) {
    const bool equal = a.value == b.value;
    return made(of, [&](std::size_t k) TRIREME_INLINED {
      const A both = a.slope[k] + b.slope[k];
      return first ? a.slope[k] : second ? b.slope[k] : equal ? A(0.5) * both : both;
    });
  }
};

}  // namespace math
}  // namespace trireme
