#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// y = (x - mean) * rstd * weight + bias over the last dim; mean and rstd are [rows], kept for the backward pass.
// Ba, Kiros, Hinton 2016, arXiv 1607.06450. weight and bias may be undefined: 1 and 0.
// With a defined `residual`, first x_sum = x + residual, and the norm is of x_sum: one pass over memory.
template <typename T, typename D>
struct LayerNormForward {
  Tensor<T, D> x = {};
  Tensor<T, D> residual = {};  // may be undefined
  Tensor<T, D> weight = {};
  Tensor<T, D> bias = {};
  double epsilon = 1e-5;
  Tensor<T, D> x_sum = {};  // out; needed only with residual
  Tensor<T, D> y = {};      // out
  Tensor<T, D> mean = {};   // out
  Tensor<T, D> rstd = {};   // out
};
template <typename T, typename D>
void layer_norm(const LayerNormForward<T, D>& pass);

// x is the normalised input (x_sum with a residual). dweight and dbias may be undefined. `accumulate_*` adds.
template <typename T, typename D>
struct LayerNormBackward {
  Tensor<T, D> x = {};
  Tensor<T, D> weight = {};
  Tensor<T, D> mean = {};
  Tensor<T, D> rstd = {};
  Tensor<T, D> dy = {};
  Tensor<T, D> dx = {};  // out
  bool accumulate_dx = false;
  Tensor<T, D> dweight = {};  // out
  bool accumulate_dweight = false;
  Tensor<T, D> dbias = {};  // out
  bool accumulate_dbias = false;
};
template <typename T, typename D>
void layer_norm_backward(const LayerNormBackward<T, D>& pass);

}  // namespace trireme::ops
