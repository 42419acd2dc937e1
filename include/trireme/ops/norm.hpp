#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// y = (x - mean) * rstd * weight + bias over the last dim; mean and rstd are [rows], kept for the backward pass.
// Ba, Kiros, Hinton 2016, arXiv 1607.06450. weight and bias may be undefined: 1 and 0.
// With a defined `residual`, first x_sum = x + residual, and the norm is of x_sum: one pass over memory.
// T is what goes into matrix products or comes out of them; with bfloat16 or float16 all else is float.
template <typename T, typename D>
struct LayerNormForward {
  using A = Accumulate<T>;
  Tensor<A, D> x = {};
  Tensor<T, D> residual = {};  // may be undefined
  Tensor<A, D> weight = {};
  Tensor<A, D> bias = {};
  double epsilon = 1e-5;
  Tensor<A, D> x_sum = {};  // out; needed only with residual
  Tensor<T, D> y = {};      // out
  Tensor<A, D> mean = {};   // out
  Tensor<A, D> rstd = {};   // out
};
template <typename T, typename D>
void layer_norm(const LayerNormForward<T, D>& pass);

// x is the normalised input (x_sum with a residual). dweight and dbias may be undefined. `accumulate_*` adds.
template <typename T, typename D>
struct LayerNormBackward {
  using A = Accumulate<T>;
  Tensor<A, D> x = {};
  Tensor<A, D> weight = {};
  Tensor<A, D> mean = {};
  Tensor<A, D> rstd = {};
  Tensor<T, D> dy = {};
  Tensor<A, D> dx = {};  // out
  bool accumulate_dx = false;
  Tensor<T, D> dresidual = {};  // out; dx once more, rounded to T; may be undefined
  Tensor<A, D> dweight = {};    // out
  bool accumulate_dweight = false;
  Tensor<A, D> dbias = {};  // out
  bool accumulate_dbias = false;
};
template <typename T, typename D>
void layer_norm_backward(const LayerNormBackward<T, D>& pass);

}  // namespace trireme::ops
