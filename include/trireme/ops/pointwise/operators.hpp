#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/pointwise/functions.hpp"

// a + b, a - b, a * b, a / b, -a and a < b of Tensors and numbers, element by element, and a += b in place:
//
//   const Tensor<float> scaled = (x - mean) / deviation;  // [batch, width], [width], [width]
//   x *= 0.5;
//
// Shapes are broadcast (ops/pointwise/broadcast.hpp). There is no ==, because it would hide the comparison of whole objects.
// Write eq(a, b) instead. autograd/composed/operators.hpp has the operators of Variables.
namespace trireme TRIREME_EXPORT {

template <typename A, typename B>
requires detail::TensorPair<A, B>
auto operator+(const A& a, const B& b) { return add(a, b); }
template <typename A, typename B>
requires detail::TensorPair<A, B>
auto operator-(const A& a, const B& b) { return subtract(a, b); }
template <typename A, typename B>
requires detail::TensorPair<A, B>
auto operator*(const A& a, const B& b) { return multiply(a, b); }
template <typename A, typename B>
requires detail::TensorPair<A, B>
auto operator/(const A& a, const B& b) { return divide(a, b); }
template <detail::AnyTensor X>
X operator-(const X& x) {
  return neg(x);
}

// Comparisons of Tensors, Variables and numbers return a Tensor<bool>.
template <typename A, typename B>
requires detail::Pair<A, B>
auto operator<(const A& a, const B& b) { return lt(a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto operator<=(const A& a, const B& b) { return le(a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto operator>(const A& a, const B& b) { return gt(a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto operator>=(const A& a, const B& b) { return ge(a, b); }

namespace detail {

// Whether a and b share memory, but are not the same elements.
template <typename T, typename D>
bool overlap(const Tensor<T, D>& a, const Tensor<T, D>& b) {
  const auto begin = [](const Tensor<T, D>& x) { return reinterpret_cast<std::uintptr_t>(x.data()); };
  const auto end = [&](const Tensor<T, D>& x) { return begin(x) + sizeof(T) * static_cast<std::size_t>(x.numel()); };
  if (begin(a) == begin(b) && a.shape() == b.shape()) return false;
  return begin(a) < end(b) && begin(b) < end(a);
}

template <typename T, typename D, typename B>
Tensor<T, D>& assign(ops::Binary kind, Tensor<T, D>& a, const B& b) {
  if constexpr (Number<B>) {
    ops::binary(kind, a, number_for<T>(b), a);
  } else {
    ops::binary(kind, a, b.defined() && overlap(a, b) ? b.clone() : b, a);
  }
  return a;
}

}  // namespace detail

// These operators change a in place; b is broadcast to the shape of a.
template <detail::AnyTensor A, typename B>
requires detail::TensorPair<A, B> A& operator+=(A& a, const B& b) { return detail::assign(ops::Binary::add, a, b); }
template <detail::AnyTensor A, typename B>
requires detail::TensorPair<A, B> A& operator-=(A& a, const B& b) { return detail::assign(ops::Binary::subtract, a, b); }
template <detail::AnyTensor A, typename B>
requires detail::TensorPair<A, B> A& operator*=(A& a, const B& b) { return detail::assign(ops::Binary::multiply, a, b); }
template <detail::AnyTensor A, typename B>
requires detail::TensorPair<A, B> A& operator/=(A& a, const B& b) { return detail::assign(ops::Binary::divide, a, b); }

}  // namespace trireme
