#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/array/strided_copy.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y[box] = x[box], or += with `accumulate`; the rest of y stays. Sums are rounded to T once, and go in an order that follows
// from the box alone. x and y are contiguous tensors of any shape that share no memory; no two elements of the box may lie at
// one place of y, but along a dim whose `to` is 0. T: float, double, bfloat16, float16, std::int32_t, std::int64_t; bool where
// nothing is added. Error{invalid_argument} for a box that leaves x or y.
template <typename T, typename D>
TRIREME_EXPORT void copy_strided(const StridedCopy& box, const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate = false);

}  // namespace ops
}  // namespace trireme
