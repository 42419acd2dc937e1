#pragma once

#include <string_view>
#include <type_traits>

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/core/export.hpp"

// a + b, a - b, a * b, a / b and -a, element by element, of Variables and numbers:
//
//   const Value y = x + attention.forward(norm.forward(x));
//   const Value gated = (1 - z) * n + z * h;
//
// Shapes are broadcast (ops/pointwise/broadcast.hpp): [8, 256, 384] * [384] repeats the second operand. A Variable and a Tensor
// of the same element type give a Variable. A Variable of float and a Variable of bfloat16 or float16 give float: the half type
// is cast. So in mixed precision a Stream and a Value give a Stream. A number is rounded to float, unless the Variable is of
// double. x / number multiplies by 1 / number. Tensors have operators of their own (ops/pointwise/operators.hpp).
//
// C++ does not say whether `f(x) + g(x)` computes f(x) or g(x) first. If both read the same x of a half type, the last bits of
// x's gradient depend on this order, because the gradient is rounded after each contribution. Compute f(x) and g(x) in separate
// statements to get the same bits with all compilers.
namespace trireme TRIREME_EXPORT {

namespace detail {

template <typename X>
concept AnyVariable = IsVariable<X>::value;

template <typename X>
struct VariableTypes;
template <typename T_, typename D_, typename G_>
struct VariableTypes<Variable<T_, D_, G_>> {
  using T = T_;
  using D = D_;
  static constexpr bool is_weight = !std::is_same_v<T_, G_>;
};

// The element type in which an operator computes. If there is none, a static_assert says what to write instead.
template <typename A, typename B>
struct ElementOfBoth {
  using TA = typename VariableTypes<A>::T;
  using TB = typename VariableTypes<B>::T;
  static constexpr bool same = std::is_same_v<TA, TB>;
  static constexpr bool one_device = std::is_same_v<typename VariableTypes<A>::D, typename VariableTypes<B>::D>;
  static constexpr bool weights = VariableTypes<A>::is_weight || VariableTypes<B>::is_weight;
  static constexpr bool halves = !same && !std::is_same_v<TA, Accumulate<TA>> && !std::is_same_v<TB, Accumulate<TB>>;
  static constexpr bool has_double = !same && (std::is_same_v<TA, double> || std::is_same_v<TB, double>);
  static constexpr bool fits = one_device && !weights && !halves && !has_double;
  static_assert(one_device, "one operand lies on the CPU and one on a GPU: make both on the device of the model");
  static_assert(!weights, "a weight of half precision is for matrix products: write weight.master() in place of variable()");
  static_assert(!halves, "bfloat16 and float16 have no common type: write cast<float>(a) and cast<float>(b)");
  static_assert(!has_double, "a Variable of double combines only with Variables of double: give all operands one type");
  using type = std::conditional_t<same, TA, float>;
};
template <typename To, typename T, typename D>
decltype(auto) as(const Variable<T, D>& x) {
  if constexpr (std::is_same_v<To, T>) {
    return (x);
  } else {
    return cast<To>(x);
  }
}

// Calls function(a, b) with both operands cast to their common type.
template <typename A, typename B>
auto of_both(std::string_view operation, const A& a, const B& b, const auto& function) {
  using Both = ElementOfBoth<A, B>;
  if constexpr (Both::fits) {
    require_operands(operation, a, b);
    return function(as<typename Both::type>(a), as<typename Both::type>(b));
  } else {
    return a;
  }
}

}  // namespace detail

template <detail::AnyVariable A, detail::AnyVariable B>
auto operator+(const A& a, const B& b) {
  return detail::of_both("add", a, b, [](const auto& x, const auto& y) { return add(x, y); });
}
template <detail::AnyVariable A, detail::AnyVariable B>
auto operator-(const A& a, const B& b) {
  return detail::of_both("subtract", a, b, [](const auto& x, const auto& y) { return subtract(x, y); });
}
template <detail::AnyVariable A, detail::AnyVariable B>
auto operator*(const A& a, const B& b) {
  return detail::of_both("multiply", a, b, [](const auto& x, const auto& y) { return multiply(x, y); });
}
template <detail::AnyVariable A, detail::AnyVariable B>
auto operator/(const A& a, const B& b) {
  return detail::of_both("divide", a, b, [](const auto& x, const auto& y) { return divide(x, y); });
}

// For a Variable and a Tensor of the same element type.
template <typename A, typename B>
requires detail::VariableAndTensor<A, B>
auto operator+(const A& a, const B& b) { return add(a, b); }
template <typename A, typename B>
requires detail::VariableAndTensor<A, B>
auto operator-(const A& a, const B& b) { return subtract(a, b); }
template <typename A, typename B>
requires detail::VariableAndTensor<A, B>
auto operator*(const A& a, const B& b) { return multiply(a, b); }
template <typename A, typename B>
requires detail::VariableAndTensor<A, B>
auto operator/(const A& a, const B& b) { return divide(a, b); }

template <typename T, typename D>
Variable<T, D> operator-(const Variable<T, D>& x) {
  return scale(x, Accumulate<T>{-1});
}

template <typename T, typename D>
Variable<T, D> operator+(const Variable<T, D>& x, detail::Number auto number) {
  return shift(x, detail::number_for<T>(number));
}
template <typename T, typename D>
Variable<T, D> operator+(detail::Number auto number, const Variable<T, D>& x) {
  return x + number;
}
template <typename T, typename D>
Variable<T, D> operator-(const Variable<T, D>& x, detail::Number auto number) {
  return shift(x, -detail::number_for<T>(number));
}
template <typename T, typename D>
Variable<T, D> operator-(detail::Number auto number, const Variable<T, D>& x) {
  return -x + number;
}
template <typename T, typename D>
Variable<T, D> operator*(const Variable<T, D>& x, detail::Number auto number) {
  return scale(x, detail::number_for<T>(number));
}
template <typename T, typename D>
Variable<T, D> operator*(detail::Number auto number, const Variable<T, D>& x) {
  return x * number;
}
template <typename T, typename D>
Variable<T, D> operator/(const Variable<T, D>& x, detail::Number auto number) {
  return scale(x, static_cast<Accumulate<T>>(1 / static_cast<double>(number)));
}
template <typename T, typename D>
Variable<T, D> operator/(detail::Number auto number, const Variable<T, D>& x) {
  return divide(number, x);
}

// Operators of losses, see add() and scale(): 0.5 * (cross_entropy(a, targets) + cross_entropy(b, targets)) - 0.01 * entropy.
template <typename T, typename D>
Loss<T, D> operator+(const Loss<T, D>& a, const Loss<T, D>& b) {
  return add(a, b);
}
template <typename T, typename D, typename V>
requires std::same_as<Accumulate<V>, T> Loss<T, D>
operator+(const Loss<T, D>& loss, const Variable<V, D>& value) { return add(loss, value); }
template <typename T, typename D, typename V>
requires std::same_as<Accumulate<V>, T> Loss<T, D>
operator+(const Variable<V, D>& value, const Loss<T, D>& loss) { return add(loss, value); }
template <typename T, typename D>
Loss<T, D> operator-(const Loss<T, D>& loss) {
  return scale(loss, -1);
}
template <typename T, typename D>
Loss<T, D> operator-(const Loss<T, D>& a, const Loss<T, D>& b) {
  return add(a, -b);
}
template <typename T, typename D, typename V>
requires std::same_as<Accumulate<V>, T> Loss<T, D>
operator-(const Loss<T, D>& loss, const Variable<V, D>& value) { return add(loss, -value); }
template <typename T, typename D, typename V>
requires std::same_as<Accumulate<V>, T> Loss<T, D>
operator-(const Variable<V, D>& value, const Loss<T, D>& loss) { return add(-loss, value); }
template <typename T, typename D>
Loss<T, D> operator*(const Loss<T, D>& loss, detail::Number auto factor) {
  return scale(loss, static_cast<double>(factor));
}
template <typename T, typename D>
Loss<T, D> operator*(detail::Number auto factor, const Loss<T, D>& loss) {
  return loss * factor;
}
template <typename T, typename D>
Loss<T, D> operator/(const Loss<T, D>& loss, detail::Number auto divisor) {
  return loss * (1 / static_cast<double>(divisor));
}

}  // namespace trireme
