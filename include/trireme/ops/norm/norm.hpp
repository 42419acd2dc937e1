#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Both norms scale each row (the last dim of x) by rstd and by weight. mean and rstd, kept for the backward pass, are [rows].
// If `residual` is defined, x_sum = x + residual is computed in the same pass, and x_sum is normalised instead of x. T is the
// type of the operands and results of matrix products; if T is bfloat16 or float16, all other tensors are float.
template <typename T, typename D>
struct NormForward {
  using A = Accumulate<T>;
  Tensor<A, D> x = {};
  Tensor<T, D> residual = {};  // may be undefined
  Tensor<A, D> weight = {};    // may be undefined: 1
  Tensor<A, D> bias = {};      // layer_norm only; undefined: zeros
  double epsilon = 1e-5;
  Tensor<A, D> x_sum = {};  // out; needed only with residual
  Tensor<T, D> y = {};      // out
  Tensor<A, D> mean = {};   // out; layer_norm only
  Tensor<A, D> rstd = {};   // out
};

// y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(variance + epsilon).
// Ba, Kiros, Hinton 2016, arXiv 1607.06450.
template <typename T, typename D>
TRIREME_EXPORT void layer_norm(const NormForward<T, D>& pass);

// y = x * rstd * weight, rstd = 1 / sqrt(average of x^2 + epsilon). Zhang, Sennrich 2019, arXiv 1910.07467.
template <typename T, typename D>
TRIREME_EXPORT void rms_norm(const NormForward<T, D>& pass);

// x is the input of the norm (x_sum with a residual). dweight and dbias may be undefined. `accumulate_*` adds to the gradient
// instead of overwriting it.
template <typename T, typename D>
struct NormBackward {
  using A = Accumulate<T>;
  Tensor<A, D> x = {};
  Tensor<A, D> weight = {};
  Tensor<A, D> mean = {};  // layer_norm only
  Tensor<A, D> rstd = {};
  Tensor<T, D> dy = {};
  Tensor<A, D> dx = {};  // out
  bool accumulate_dx = false;
  Tensor<T, D> dresidual = {};  // out; a copy of dx, rounded to T; may be undefined
  Tensor<A, D> dweight = {};    // out
  bool accumulate_dweight = false;
  Tensor<A, D> dbias = {};  // out; layer_norm only
  bool accumulate_dbias = false;
};
template <typename T, typename D>
TRIREME_EXPORT void layer_norm_backward(const NormBackward<T, D>& pass);
template <typename T, typename D>
TRIREME_EXPORT void rms_norm_backward(const NormBackward<T, D>& pass);

}  // namespace ops
}  // namespace trireme
