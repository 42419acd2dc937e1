#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>

#include "ops/base/check.hpp"
#include "ops/pointwise/pointwise_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/pointwise/pointwise.hpp"
#include "trireme/ops/reduce/reductions.hpp"

// The operations of ops/pointwise/pointwise.hpp for any device: Pointwise<D> does the work.
namespace trireme::ops {

// UnaryNumbers in the type that T is computed in. Values outside the range of an integer type are clamped to it.
template <typename T>
struct NumbersAs {
  using A = Accumulate<T>;
  explicit NumbersAs(const UnaryNumbers& numbers) : first(as(numbers.first)), second(as(numbers.second)) {}

  A first;
  A second;

 private:
  static A as(double number) {
    if constexpr (std::is_integral_v<A>) {
      if (number <= static_cast<double>(std::numeric_limits<A>::min())) return std::numeric_limits<A>::min();
      if (number >= static_cast<double>(std::numeric_limits<A>::max())) return std::numeric_limits<A>::max();
    }
    return static_cast<A>(number);
  }
};

template <typename D>
struct Pointwise {
  template <typename T>
  static void binary(Binary kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b, T* c);
  // dx = dy * slope, or +=, for all elements of the result.
  template <typename T>
  static void binary_slope(Binary kind, Side side, const Broadcast& plan, const OperandArgument<T>& a,
                           const OperandArgument<T>& b, const T* dy, T* dx, bool accumulate);
  template <typename T>
  static void unary(Unary kind, const NumbersAs<T>& numbers, std::int64_t count, const T* x, T* y);
  template <typename T>
  static void unary_slope(Unary kind, const NumbersAs<T>& numbers, std::int64_t count, const T* x, const T* dy, T* dx,
                          bool accumulate);
  template <typename T>
  static void compare(Comparison kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                      bool* mask);
  template <typename T>
  static void test(FloatTest kind, std::int64_t count, const T* x, bool* mask);
  static void logical(Logical kind, const Broadcast& plan, const bool* a, const bool* b, bool* c);
  template <typename Bits>
  static void where(const Broadcast& plan, const bool* mask, const OperandArgument<Bits>& a, const OperandArgument<Bits>& b,
                    Bits* c);
};

template <typename T, typename D>
OperandArgument<T> argument_of(const PointwiseOperand<T, D>& operand) {
  return {.data = operand.is_number ? nullptr : operand.tensor.data(), .number = operand.number};
}

// Returns the shape of the result of both operands. Throws unless `c` has it.
template <typename T, typename D, typename C>
Shape require_pair(std::string_view op, const PointwiseOperand<T, D>& a, const PointwiseOperand<T, D>& b,
                   const Tensor<C, D>& c) {
  require(a.is_number || a.tensor.defined(), "{}: a is undefined", op);
  require(b.is_number || b.tensor.defined(), "{}: b is undefined", op);
  const Shape shape = broadcast_shape(op, a.shape(), b.shape());
  require_shape(op, "the result", c, shape);
  return shape;
}

template <typename T, typename D>
void binary(Binary kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b, Tensor<T, D>& c) {
  const Shape shape = require_pair(name_of(kind), a, b, c);
  c.count_change();
  if (shape.numel() == 0) return;
  Pointwise<D>::binary(kind, Broadcast(shape, {a.shape(), b.shape()}), argument_of(a), argument_of(b), c.data());
}

template <typename T, typename D>
void binary_backward(Binary kind, Side side, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                     const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  const Shape shape = require_pair(name_of(kind), a, b, dy);
  require_shape(name_of(kind), "the gradient of an operand", dx, side == Side::left ? a.shape() : b.shape());
  const bool whole = dx.shape() == shape;
  Tensor<T, D> products = whole ? dx : Tensor<T, D>(shape);
  if (shape.numel() > 0) {
    Pointwise<D>::binary_slope(kind, side, Broadcast(shape, {a.shape(), b.shape()}), argument_of(a), argument_of(b), dy.data(),
                               products.data(), whole && accumulate);
  }
  if (!whole) sum_to_shape(products, dx, accumulate);
}

template <typename T, typename D>
void unary(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_defined(name_of(kind), "x", x);
  require_shape(name_of(kind), "y", y, x.shape());
  if (x.numel() > 0) Pointwise<D>::unary(kind, NumbersAs<T>(numbers), x.numel(), x.data(), y.data());
}

template <typename T, typename D>
void unary_backward(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                    bool accumulate) {
  require_defined(name_of(kind), "x", x);
  require_shape(name_of(kind), "dy", dy, x.shape());
  require_shape(name_of(kind), "dx", dx, x.shape());
  if (x.numel() > 0)
    Pointwise<D>::unary_slope(kind, NumbersAs<T>(numbers), x.numel(), x.data(), dy.data(), dx.data(), accumulate);
}

// Rounds a number to T first, so that 0.1 is equal to the bfloat16 nearest to it.
template <typename T, typename D>
OperandArgument<T> rounded_argument_of(const PointwiseOperand<T, D>& operand) {
  OperandArgument<T> argument = argument_of(operand);
  argument.number = computed(element_of<T>(argument.number));
  return argument;
}

template <typename T, typename D>
void compare(Comparison kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b, Tensor<bool, D>& mask) {
  const Shape shape = require_pair(name_of(kind), a, b, mask);
  mask.count_change();
  if (shape.numel() == 0) return;
  Pointwise<D>::compare(kind, Broadcast(shape, {a.shape(), b.shape()}), rounded_argument_of(a), rounded_argument_of(b),
                        mask.data());
}

template <typename T, typename D>
void float_test(FloatTest kind, const Tensor<T, D>& x, Tensor<bool, D>& mask) {
  require_defined(name_of(kind), "x", x);
  require_shape(name_of(kind), "the result", mask, x.shape());
  if (x.numel() > 0) Pointwise<D>::test(kind, x.numel(), x.data(), mask.data());
}

template <typename D>
void logical(Logical kind, const Tensor<bool, D>& a, const Tensor<bool, D>& b, Tensor<bool, D>& c) {
  require_defined(name_of(kind), "a", a);
  require_defined(name_of(kind), "b", b);
  const Shape shape = broadcast_shape(name_of(kind), a.shape(), b.shape());
  require_shape(name_of(kind), "the result", c, shape);
  if (shape.numel() > 0) Pointwise<D>::logical(kind, Broadcast(shape, {a.shape(), b.shape()}), a.data(), b.data(), c.data());
}

template <typename D>
void logical_not(const Tensor<bool, D>& a, Tensor<bool, D>& c) {
  require_defined("logical_not", "a", a);
  require_shape("logical_not", "the result", c, a.shape());
  logical(Logical::logical_xor, a, Tensor<bool, D>::full({}, true), c);
}

template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <typename T, typename D>
OperandArgument<BitsOf<T>> bits_of(const PointwiseOperand<T, D>& operand) {
  using Bits = BitsOf<T>;
  if (!operand.is_number) return {.data = reinterpret_cast<const Bits*>(operand.tensor.data())};
  return {.number = __builtin_bit_cast(Bits, element_of<T>(operand.number))};
}

template <typename T, typename D>
void where(const Tensor<bool, D>& mask, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
           Tensor<T, D>& c) {
  require_defined("where", "mask", mask);
  require(a.is_number || a.tensor.defined(), "where: a is undefined");
  require(b.is_number || b.tensor.defined(), "where: b is undefined");
  const Shape shape = broadcast_shape("where", mask.shape(), broadcast_shape("where", a.shape(), b.shape()));
  require_shape("where", "the result", c, shape);
  if (shape.numel() == 0) return;
  Pointwise<D>::where(Broadcast(shape, {mask.shape(), a.shape(), b.shape()}), mask.data(), bits_of(a), bits_of(b),
                      reinterpret_cast<BitsOf<T>*>(c.data()));
}

template <typename T, typename D>
void sum_to_shape(const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate, double factor) {
  require_defined("sum_to_shape", "x", x);
  require_defined("sum_to_shape", "y", y);
  require(broadcast_shape("sum_to_shape", x.shape(), y.shape()) == x.shape(),
          "sum_to_shape: the shape {} cannot be repeated to {}", y.shape(), x.shape());
  y.count_change();
  if (y.numel() == 0) return;
  Tensor<T, D> sums = x;
  if (y.numel() != x.numel()) {
    std::array<int, Shape::max_dims> dims{};
    std::size_t count = 0;
    const int missing = x.shape().size() - y.shape().size();
    for (int dim = 0; dim < x.shape().size(); ++dim) {
      if (dim < missing || y.shape()[dim - missing] != x.shape()[dim]) dims[count++] = dim;
    }
    const ReductionOptions over{.kind = Reduction::sum, .dims = Dims(std::span<const int>(dims.data(), count))};
    sums = Tensor<T, D>(reduced_shape("sum_to_shape", x.shape(), over.dims, false));
    reduce(over, x, sums);
  }
  scale(sums.reshape(y.shape()), static_cast<Accumulate<T>>(factor), y, accumulate);
}

}  // namespace trireme::ops
