#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// columns[n] = sum over rows of x[rows, n], zero if there are no rows. This is the gradient of a bias. The bits are the same
// for any number of threads.
template <typename T, typename D>
TRIREME_EXPORT void sum_rows(const Tensor<T, D>& x, Tensor<Accumulate<T>, D>& columns, bool accumulate);

// Sum of the squares of `count` elements, accumulated in double: on the CPU in blocks of 4,096 elements, on a GPU in an order
// that depends only on `count`. The sum is inf or nan if an element is inf or nan.
template <typename T, typename D = Cpu>
TRIREME_EXPORT Scalar<double, D> sum_of_squares(const T* x, std::size_t count, D = {});

}  // namespace ops
}  // namespace trireme
