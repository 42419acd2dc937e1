#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The shape of a b for a[..., m, k] and b[..., k, n]: leading dims are broadcast as in NumPy, [..., m, n].
Shape batched_matmul_shape(const Shape& a, const Shape& b);

// c[..., m, n] = a[..., m, k] b[..., k, n] for every matrix of c; an operand's leading dims may be 1 or missing: they are
// broadcast. A transposed operand is stored as [..., k, m] or [..., n, k]. T: as of matmul.
template <typename T, typename D>
TRIREME_EXPORT void batched_matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options = {});

// da (+)= dc b^T and db (+)= a^T dc, summed over broadcast dims; an undefined da or db is not computed. G: T, or float for
// weights of half types.
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
