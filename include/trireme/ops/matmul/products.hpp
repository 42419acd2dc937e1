#pragma once

#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Products of tensors, for float, double, bfloat16 and float16:
//
//   matmul(a, b);                       // [2, 3] [3, 4] -> [2, 4]
//   einsum("bij,bjk->bik", a, b);       // the same of each b
//   einsum("ij->j", a);                 // sums of columns
//
// Functions of Variables have the same names (autograd/operations/matmul.hpp).
namespace trireme TRIREME_EXPORT {

// a[..., m, k] b[..., k, n] -> [..., m, n]; leading dims are broadcast. A vector on the left is a row, on the right a column,
// and has no dim in the result: [k] [..., k, n] -> [..., n], [..., m, k] [k] -> [..., m], [k] [k] -> [].
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> matmul(const Tensor<T, D>& a, const Tensor<T, D>& b);

// y[i, j] = a[i] b[j] of two vectors.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> outer(const Tensor<T, D>& a, const Tensor<T, D>& b);

// The sum of a[i] b[i] of two vectors, a scalar.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> dot(const Tensor<T, D>& a, const Tensor<T, D>& b);

// Einstein's sums: a letter names a dim of each operand; what stands behind the arrow are the dims of the result, over all
// other letters the products are added up. Without an arrow the result has the letters that stand once, in the order of the
// alphabet. Spaces mean nothing. A letter stands once in an operand, for equal dims in both; "..." is not known: Errors say so.
// It is done by sums, transposed copies and one matrix product.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& a, const Tensor<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& x);

}  // namespace trireme
