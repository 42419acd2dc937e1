#pragma once

#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Products of tensors, for float, double, bfloat16 and float16:
//
//   matmul(a, b);                       // [2, 3] [3, 4] -> [2, 4]
//   einsum("bij,bjk->bik", a, b);       // [b, i, j] [b, j, k] -> [b, i, k]
//   einsum("ij->j", a);                 // sums of columns
//
// Functions of Variables have the same names (autograd/operations/matmul.hpp).
namespace trireme TRIREME_EXPORT {

// a[..., m, k] b[..., k, n] -> [..., m, n]; leading dims are broadcast. A vector is a row on the left and a column on the
// right, and the result has no dim for the vector: [k] [..., k, n] -> [..., n], [..., m, k] [k] -> [..., m], [k] [k] -> [].
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> matmul(const Tensor<T, D>& a, const Tensor<T, D>& b);

// y[i, j] = a[i] b[j] of two vectors.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> outer(const Tensor<T, D>& a, const Tensor<T, D>& b);

// The sum of a[i] b[i] of two vectors, a scalar.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> dot(const Tensor<T, D>& a, const Tensor<T, D>& b);

// Einstein summation: each letter names a dim. The letters after the arrow are the dims of the result; products are summed over
// all other letters. Without an arrow the result has the letters that occur once, in alphabetical order. Spaces are ignored.
// Throws Error if a letter occurs twice in an operand or names different extents. "..." is not supported. The computation
// consists of sums, transposed copies and one matrix product.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& a, const Tensor<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& x);

}  // namespace trireme
