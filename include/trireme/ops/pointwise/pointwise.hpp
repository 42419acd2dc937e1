#pragma once

#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/pointwise/broadcast.hpp"
#include "trireme/ops/pointwise/pointwise_kind.hpp"
#include "trireme/tensor/tensor.hpp"

// Elementwise operations that write to existing tensors. Operands are broadcast (ops/pointwise/broadcast.hpp). T: float,
// double, bfloat16, float16; also std::int32_t and std::int64_t ("integers") for functions that say so. The result may be the
// same tensor as an operand of its shape.
namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor, or a number in the type in which T is computed.
template <typename T, typename D>
struct PointwiseOperand {
  PointwiseOperand(Tensor<T, D> of) : tensor(std::move(of)) {}
  PointwiseOperand(Accumulate<T> of) : number(of), is_number(true) {}

  Shape shape() const { return is_number ? Shape() : tensor.shape(); }

  Tensor<T, D> tensor = {};
  Accumulate<T> number = {};
  bool is_number = false;
};
template <typename T, typename D>
using PointwiseOperandFor = std::type_identity_t<PointwiseOperand<T, D>>;

// Integers are allowed and wrap around. divide rounds quotients of integers toward zero, and dividing an integer by 0 gives 0.
// pow of integers with a negative exponent is 1 / pow(a, -b), rounded toward zero.
template <typename T, typename D>
TRIREME_EXPORT void binary(Binary kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                           Tensor<T, D>& c);

// dx = the gradient of the operand on `side`, in the shape of this operand: dy times the derivative, summed over the dims in
// which the operand is repeated. If the operands of minimum or maximum are equal, each operand gets half of the gradient. The
// derivative of pow with respect to the exponent is 0 where a is 0 and the exponent is not negative.
template <typename T, typename D>
TRIREME_EXPORT void binary_backward(Binary kind, Side side, const PointwiseOperandFor<T, D>& a,
                                    const PointwiseOperandFor<T, D>& b, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                    bool accumulate);

// clamp and the operations of TRIREME_EACH_NUMBER_UNARY also accept integers.
template <typename T, typename D>
TRIREME_EXPORT void unary(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void unary_backward(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, const Tensor<T, D>& dy,
                                   Tensor<T, D>& dx, bool accumulate);

// Integers are allowed. Call it as compare<T>(...). All comparisons with a NaN are false, except ne.
template <typename T, typename D>
TRIREME_EXPORT void compare(Comparison kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                            Tensor<bool, D>& mask);

template <typename T, typename D>
TRIREME_EXPORT void float_test(FloatTest kind, const Tensor<T, D>& x, Tensor<bool, D>& mask);

template <typename D>
TRIREME_EXPORT void logical(Logical kind, const Tensor<bool, D>& a, const Tensor<bool, D>& b, Tensor<bool, D>& c);
template <typename D>
TRIREME_EXPORT void logical_not(const Tensor<bool, D>& a, Tensor<bool, D>& c);

// Copies the bits of a where the mask is true, and the bits of b elsewhere. Integers and bool are allowed.
template <typename T, typename D>
TRIREME_EXPORT void where(const Tensor<bool, D>& mask, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                          Tensor<T, D>& c);

// Sums x to the shape of y, which can be broadcast to the shape of x: y = factor * the sum of x over the dims that y lacks or
// has with extent 1. See ops/reduce/reductions.hpp.
template <typename T, typename D>
TRIREME_EXPORT void sum_to_shape(const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate = false, double factor = 1);

}  // namespace ops
}  // namespace trireme
