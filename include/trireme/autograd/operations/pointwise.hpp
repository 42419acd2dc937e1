#pragma once

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/pointwise/functions.hpp"
#include "trireme/ops/pointwise/operators.hpp"

// The functions of ops/pointwise/functions.hpp for Variables, with gradients:
//
//   const Variable<float> y = exp(minimum(x, 3)) * where(x > 0, x, 0.5);
//
// One of two operands may be a Tensor, which is a constant. The gradient of a broadcast operand is summed over its broadcast
// dims, in an order that does not depend on threads.
namespace trireme TRIREME_EXPORT {
namespace detail {

template <typename T_, typename D_>
struct ElementsOf<Variable<T_, D_>> {
  using T = T_;
  using D = D_;
  static constexpr bool floats = is_float_element<T_>;
  static constexpr bool whole = false;
  static constexpr bool is_tensor = false;
};

template <typename A, typename B>
concept VariablePair = Pair<A, B> &&(IsVariable<A>::value || IsVariable<B>::value);
template <typename A, typename B>
concept VariableAndTensor = VariablePair<A, B> &&(AnyTensor<A> || AnyTensor<B>);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> binary_of(ops::Binary kind, const Variable<T, D>& a, const Variable<T, D>& b);

// The number is the left or the right operand.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> binary_with_number(ops::Binary kind, const Variable<T, D>& x, Accumulate<T> number,
                                                 ops::Side side);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> where_of(const Tensor<bool, D>& mask, const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> where_with_number(const Tensor<bool, D>& mask, const Variable<T, D>& x, Accumulate<T> number,
                                                ops::Side side);

// Calls of_both with a and b as Variables, or with_number if one of them is a number.
template <typename A, typename B>
auto with_variables(const A& a, const B& b, const auto& of_both, const auto& with_number) {
  using Of = ElementsOf<std::conditional_t<Elements<A>, A, B>>;
  using V = Variable<typename Of::T, typename Of::D>;
  if constexpr (Number<A>) {
    return with_number(V(b), number_for<typename Of::T>(a), ops::Side::left);
  } else if constexpr (Number<B>) {
    return with_number(V(a), number_for<typename Of::T>(b), ops::Side::right);
  } else {
    return of_both(V(a), V(b));
  }
}

}  // namespace detail

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> pointwise(ops::Unary kind, const Variable<T, D>& x, const ops::UnaryNumbers& numbers = {});

template <typename A, typename B>
requires detail::VariablePair<A, B>
auto pointwise(ops::Binary kind, const A& a, const B& b) {
  return detail::with_variables(
      a, b, [kind](const auto& x, const auto& y) { return detail::binary_of(kind, x, y); },
      [kind](const auto& x, auto number, ops::Side side) { return detail::binary_with_number(kind, x, number, side); });
}

template <typename D, typename A, typename B>
requires detail::VariablePair<A, B>
auto where(const Tensor<bool, D>& mask, const A& a, const B& b) {
  return detail::with_variables(
      a, b, [&mask](const auto& x, const auto& y) { return detail::where_of(mask, x, y); },
      [&mask](const auto& x, auto number, ops::Side side) { return detail::where_with_number(mask, x, number, side); });
}

}  // namespace trireme
