#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/array/strided_copy.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y[box] = x[box], or += with `accumulate`; the rest of y is unchanged. Sums are rounded to T once, and their order depends
// only on the box. x and y are contiguous tensors of any shape that share no memory. Two elements of the box may go to the same
// element of y only along a dim with to = 0. T: float, double, bfloat16, float16, std::int32_t, std::int64_t; bool if nothing
// is added. Throws Error{invalid_argument} for a box that reaches outside x or y.
template <typename T, typename D>
TRIREME_EXPORT void copy_strided(const StridedCopy& box, const Tensor<T, D>& x, Tensor<T, D>& y, bool accumulate = false);

}  // namespace ops
}  // namespace trireme
