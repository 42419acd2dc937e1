#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The shape [..., m, n] of the product of a[..., m, k] and b[..., k, n]. Leading dims are broadcast as in NumPy.
Shape batched_matmul_shape(const Shape& a, const Shape& b);

// c[..., m, n] = a[..., m, k] b[..., k, n] for every matrix of c. Leading dims of an operand that have extent 1 or are missing
// are broadcast. A transposed operand is stored as [..., k, m] or [..., n, k]. T: as for matmul.
template <typename T, typename D>
TRIREME_EXPORT void batched_matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options = {});

// da (+)= dc b^T and db (+)= a^T dc, summed over broadcast dims; an undefined da or db is not computed. G: T, or float for
// weights of 16 bits.
template <typename T, typename D, typename G = T>
struct BatchedMatmulBackward {
  Tensor<T, D> a = {};
  Tensor<T, D> b = {};
  Tensor<T, D> dc = {};
  Tensor<T, D> da = {};  // out
  bool accumulate_da = false;
  Tensor<G, D> db = {};  // out
  bool accumulate_db = false;
};
template <typename T, typename D, typename G = T>
TRIREME_EXPORT void batched_matmul_backward(const BatchedMatmulBackward<T, D, G>& pass);

}  // namespace ops
}  // namespace trireme
