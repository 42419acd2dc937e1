#pragma once

#include <cmath>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/pointwise/elements.hpp"
#include "trireme/ops/pointwise/pointwise.hpp"

// Elementwise functions of Tensors, and of Variables with autograd/operations/pointwise.hpp. Each returns a new result:
//
//   const auto y = exp(minimum(x, 3)) * where(x > 0, x, 0.5);
//
// Two operands have the same element type, or one is a number; their shapes are broadcast (ops/pointwise/broadcast.hpp).
// T: float, double, bfloat16, float16; the functions up to `clamp` also accept Tensors of std::int32_t and std::int64_t.
namespace trireme TRIREME_EXPORT {

template <typename T, typename D>
Tensor<T, D> pointwise(ops::Unary kind, const Tensor<T, D>& x, const ops::UnaryNumbers& numbers = {}) {
  require(x.defined(), "{}: x is undefined", ops::name_of(kind));
  Tensor<T, D> y(x.shape());
  ops::unary(kind, numbers, x, y);
  return y;
}

namespace detail {

template <typename C, typename T, typename D>
Tensor<C, D> result_of(std::string_view operation, const ops::PointwiseOperand<T, D>& a, const ops::PointwiseOperand<T, D>& b) {
  require(a.is_number || a.tensor.defined(), "{}: operand 1 of 2 is undefined", operation);
  require(b.is_number || b.tensor.defined(), "{}: operand 2 of 2 is undefined", operation);
  return Tensor<C, D>(ops::broadcast_shape(operation, a.shape(), b.shape()));
}

// Converts a and b to PointwiseOperands of one type and calls function(a, b).
template <typename A, typename B>
auto with_pair(const A& a, const B& b, const auto& function) {
  using Of = ElementsOf<std::conditional_t<Elements<A>, A, B>>;
  using Operand = ops::PointwiseOperand<typename Of::T, typename Of::D>;
  const auto operand = []<typename X>(const X& x) {
    if constexpr (Number<X>) {
      return Operand(number_for<typename Of::T>(x));
    } else {
      return Operand(value_of(x));
    }
  };
  return function(operand(a), operand(b));
}

template <typename A, typename B>
auto compared(ops::Comparison kind, const A& a, const B& b) {
  return with_pair(a, b,
                   [&]<typename T, typename D>(const ops::PointwiseOperand<T, D>& x, const ops::PointwiseOperand<T, D>& y) {
                     Tensor<bool, D> mask = result_of<bool>(ops::name_of(kind), x, y);
                     ops::compare<T>(kind, x, y, mask);
                     return mask;
                   });
}

template <typename X>
auto tested(ops::FloatTest kind, const X& x) {
  const auto& values = value_of(x);
  require(values.defined(), "{}: x is undefined", ops::name_of(kind));
  Tensor<bool, typename ElementsOf<X>::D> mask(values.shape());
  ops::float_test(kind, values, mask);
  return mask;
}

template <typename D>
Tensor<bool, D> combined(ops::Logical kind, const Tensor<bool, D>& a, const Tensor<bool, D>& b) {
  Tensor<bool, D> c = result_of<bool, bool, D>(ops::name_of(kind), a, b);
  ops::logical(kind, a, b, c);
  return c;
}

}  // namespace detail

template <typename A, typename B>
requires detail::TensorPair<A, B>
auto pointwise(ops::Binary kind, const A& a, const B& b) {
  return detail::with_pair(
      a, b, [&]<typename T, typename D>(const ops::PointwiseOperand<T, D>& x, const ops::PointwiseOperand<T, D>& y) {
        Tensor<T, D> result = detail::result_of<T>(ops::name_of(kind), x, y);
        ops::binary(kind, x, y, result);
        return result;
      });
}

// One of the two operands may be a number. Integers wrap around; divide rounds quotients of integers toward zero, and dividing
// an integer by 0 gives 0.
template <typename A, typename B>
requires detail::Pair<A, B>
auto add(const A& a, const B& b) { return pointwise(ops::Binary::add, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto subtract(const A& a, const B& b) { return pointwise(ops::Binary::subtract, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto multiply(const A& a, const B& b) { return pointwise(ops::Binary::multiply, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto divide(const A& a, const B& b) { return pointwise(ops::Binary::divide, a, b); }

// The result is NaN where an operand is NaN. Where the operands are equal, each gets half of the gradient.
template <typename A, typename B>
requires detail::Pair<A, B>
auto minimum(const A& a, const B& b) { return pointwise(ops::Binary::minimum, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto maximum(const A& a, const B& b) { return pointwise(ops::Binary::maximum, a, b); }

template <typename A, typename B>
requires detail::Pair<A, B>
auto pow(const A& x, const B& exponent) { return pointwise(ops::Binary::pow, x, exponent); }

// abs(x), neg(x), sign(x), square(x)
#define TRIREME_UNARY_FUNCTION(name)       \
  template <detail::Elements X>            \
  X name(const X& x) {                     \
    return pointwise(ops::Unary::name, x); \
  }
TRIREME_EACH_NUMBER_UNARY(TRIREME_UNARY_FUNCTION)
#undef TRIREME_UNARY_FUNCTION

// The nearest number in [lowest, highest]; each bound may be infinite.
template <detail::Elements X>
X clamp(const X& x, double lowest, double highest) {
  require(!std::isnan(lowest) && !std::isnan(highest), "clamp: the bounds are {} and {}, but must be numbers", lowest, highest);
  if constexpr (!detail::FloatElements<X>) {
    require(std::trunc(lowest) == lowest && std::trunc(highest) == highest,
            "clamp: the bounds of integers must be integers, not {} and {}", lowest, highest);
  }
  return pointwise(ops::Unary::clamp, x, {.first = lowest, .second = highest});
}

// exp(x) and all other functions of TRIREME_EACH_FLOAT_UNARY (ops/pointwise/pointwise_kind.hpp). log(Severity, ...) of
// core/log.hpp is an overload that writes a line to the log.
#define TRIREME_UNARY_FUNCTION(name)       \
  template <detail::FloatElements X>       \
  X name(const X& x) {                     \
    return pointwise(ops::Unary::name, x); \
  }
TRIREME_EACH_FLOAT_UNARY(TRIREME_UNARY_FUNCTION)
#undef TRIREME_UNARY_FUNCTION

template <detail::FloatElements X>
X elu(const X& x, double alpha = 1) {
  return pointwise(ops::Unary::elu, x, {.first = alpha});
}

// Activations of Tensors; activations of Variables are in autograd/operations/elementwise.hpp.
template <typename T, typename D>
Tensor<T, D> activation(ops::Activation kind, const Tensor<T, D>& x) {
  Tensor<T, D> y(x.shape());
  ops::activation(kind, x, y);
  return y;
}
template <typename T, typename D>
Tensor<T, D> relu(const Tensor<T, D>& x) {
  return activation(ops::Activation::relu, x);
}
template <typename T, typename D>
Tensor<T, D> tanh(const Tensor<T, D>& x) {
  return activation(ops::Activation::tanh, x);
}
template <typename T, typename D>
Tensor<T, D> sigmoid(const Tensor<T, D>& x) {
  return activation(ops::Activation::sigmoid, x);
}
template <typename T, typename D>
Tensor<T, D> gelu(const Tensor<T, D>& x) {
  return activation(ops::Activation::gelu_tanh, x);
}
template <typename T, typename D>
Tensor<T, D> gelu_erf(const Tensor<T, D>& x) {
  return activation(ops::Activation::gelu_erf, x);
}
template <typename T, typename D>
Tensor<T, D> silu(const Tensor<T, D>& x) {
  return activation(ops::Activation::silu, x);
}

// Comparisons give a Tensor<bool>, without a gradient. All comparisons with a NaN are false, except ne.
template <typename A, typename B>
requires detail::Pair<A, B>
auto eq(const A& a, const B& b) { return detail::compared(ops::Comparison::eq, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto ne(const A& a, const B& b) { return detail::compared(ops::Comparison::ne, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto lt(const A& a, const B& b) { return detail::compared(ops::Comparison::lt, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto le(const A& a, const B& b) { return detail::compared(ops::Comparison::le, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto gt(const A& a, const B& b) { return detail::compared(ops::Comparison::gt, a, b); }
template <typename A, typename B>
requires detail::Pair<A, B>
auto ge(const A& a, const B& b) { return detail::compared(ops::Comparison::ge, a, b); }

template <detail::FloatElements X>
auto isnan(const X& x) {
  return detail::tested(ops::FloatTest::isnan, x);
}
template <detail::FloatElements X>
auto isinf(const X& x) {
  return detail::tested(ops::FloatTest::isinf, x);
}
template <detail::FloatElements X>
auto isfinite(const X& x) {
  return detail::tested(ops::FloatTest::isfinite, x);
}

template <typename D>
Tensor<bool, D> logical_and(const Tensor<bool, D>& a, const Tensor<bool, D>& b) {
  return detail::combined(ops::Logical::logical_and, a, b);
}
template <typename D>
Tensor<bool, D> logical_or(const Tensor<bool, D>& a, const Tensor<bool, D>& b) {
  return detail::combined(ops::Logical::logical_or, a, b);
}
template <typename D>
Tensor<bool, D> logical_xor(const Tensor<bool, D>& a, const Tensor<bool, D>& b) {
  return detail::combined(ops::Logical::logical_xor, a, b);
}
template <typename D>
Tensor<bool, D> logical_not(const Tensor<bool, D>& a) {
  require(a.defined(), "logical_not: the operand is undefined");
  Tensor<bool, D> c(a.shape());
  ops::logical_not(a, c);
  return c;
}

// a where the mask is true, b elsewhere. a or b may be a number; all operands are broadcast. An element that is not taken may
// be NaN; its gradient is 0.
template <typename D, typename A, typename B>
requires detail::TensorPair<A, B>
auto where(const Tensor<bool, D>& mask, const A& a, const B& b) {
  return detail::with_pair(
      a, b, [&]<typename T, typename On>(const ops::PointwiseOperand<T, On>& x, const ops::PointwiseOperand<T, On>& y) {
        require(mask.defined(), "where: the mask is undefined");
        require(x.is_number || x.tensor.defined(), "where: operand 2 of 3 is undefined");
        require(y.is_number || y.tensor.defined(), "where: operand 3 of 3 is undefined");
        Tensor<T, On> result(ops::broadcast_shape("where", mask.shape(), ops::broadcast_shape("where", x.shape(), y.shape())));
        ops::where(mask, x, y, result);
        return result;
      });
}

// x with `number` where the mask is true. The mask is broadcast to the shape of x.
template <detail::Elements X>
X masked_fill(const X& x, const Tensor<bool, typename detail::ElementsOf<X>::D>& mask, detail::Number auto number) {
  require(detail::value_of(x).defined(), "masked_fill: x is undefined");
  require(mask.defined(), "masked_fill: the mask is undefined");
  require(ops::broadcast_shape("masked_fill", x.shape(), mask.shape()) == x.shape(),
          "masked_fill: a mask of shape {} cannot be repeated to {}", mask.shape(), x.shape());
  return where(mask, number, x);
}

}  // namespace trireme
