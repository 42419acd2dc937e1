#pragma once

#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/pointwise/broadcast.hpp"
#include "trireme/ops/pointwise/pointwise_kind.hpp"
#include "trireme/tensor/tensor.hpp"

// Operations on elements and numbers, with results that exist already. Operands are repeated as ops/pointwise/broadcast.hpp
// says. T: float, double, bfloat16, float16; where it is said also std::int32_t and std::int64_t. A result may be an operand of
// its own shape.
namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor, or a number: in the type that T is computed in.
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

// Also of whole numbers, which wrap around; divide rounds them toward zero, and dividing by 0 gives 0; pow with a negative
// exponent is 1 divided by the power.
template <typename T, typename D>
TRIREME_EXPORT void binary(Binary kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                           Tensor<T, D>& c);

// The gradient of one operand, which has the shape of dx: dy times the derivative, summed over the dims in which it is
// repeated. Of equal ones minimum and maximum give both a half, and pow has no derivative in the exponent where a is 0.
template <typename T, typename D>
TRIREME_EXPORT void binary_backward(Binary kind, Side side, const PointwiseOperandFor<T, D>& a,
                                    const PointwiseOperandFor<T, D>& b, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                    bool accumulate);

// clamp and those of TRIREME_EACH_NUMBER_UNARY also of whole numbers.
template <typename T, typename D>
TRIREME_EXPORT void unary(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void unary_backward(Unary kind, const UnaryNumbers& numbers, const Tensor<T, D>& x, const Tensor<T, D>& dy,
                                   Tensor<T, D>& dx, bool accumulate);

// compare<T>(...); also of whole numbers. A NaN is unequal to all and not in an order.
template <typename T, typename D>
TRIREME_EXPORT void compare(Comparison kind, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                            Tensor<bool, D>& mask);

template <typename T, typename D>
TRIREME_EXPORT void float_test(FloatTest kind, const Tensor<T, D>& x, Tensor<bool, D>& mask);

template <typename D>
TRIREME_EXPORT void logical(Logical kind, const Tensor<bool, D>& a, const Tensor<bool, D>& b, Tensor<bool, D>& c);
template <typename D>
TRIREME_EXPORT void logical_not(const Tensor<bool, D>& a, Tensor<bool, D>& c);

// a where the mask is true, b elsewhere, bit for bit. Also of whole numbers and of bool.
template <typename T, typename D>
TRIREME_EXPORT void where(const Tensor<bool, D>& mask, const PointwiseOperandFor<T, D>& a, const PointwiseOperandFor<T, D>& b,
                          Tensor<T, D>& c);

// y = factor * the sum of x over the dims that y, which could be repeated to the shape of x, lacks or has with extent 1,
// see ops/reduce/reductions.hpp.
template <typename T, typename D>
TRIREME_EXPORT void sum_to_shape(const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate = false, double factor = 1);

}  // namespace ops
}  // namespace trireme
