#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // c += a b instead of c = a b
};

// c[m, n] = a[m, k] b[k, n], through oneDNN. Leading dims are folded into rows: a tensor [..., n] is the matrix [rows, n];
// a transposed operand is stored as [k, m] or [n, k]. T: float, double.
template <typename T, typename D>
void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options = {});

// y[rows, out] = x[rows, in] weight[out, in]^T + bias[out]; an undefined bias adds nothing.
template <typename T, typename D>
void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<T, D>& bias, Tensor<T, D>& y);

}  // namespace trireme::ops
