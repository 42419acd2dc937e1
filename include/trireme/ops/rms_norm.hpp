#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// y = x * rstd * weight over the last dim, rstd = 1 / sqrt(average of x^2 + epsilon); rstd is [rows], kept for the backward
// pass. Zhang, Sennrich 2019, arXiv 1910.07467. weight may be undefined: 1.
// With a defined `residual`, first x_sum = x + residual, and the norm is of x_sum: one pass over memory.
template <typename T, typename D>
struct RmsNormForward {
  Tensor<T, D> x = {};
  Tensor<T, D> residual = {};  // may be undefined
  Tensor<T, D> weight = {};
  double epsilon = 1e-6;
  Tensor<T, D> x_sum = {};  // out; needed only with residual
  Tensor<T, D> y = {};      // out
  Tensor<T, D> rstd = {};   // out
};
template <typename T, typename D>
void rms_norm(const RmsNormForward<T, D>& pass);

// x is the normalised input (x_sum with a residual). dweight may be undefined. `accumulate_*` adds.
template <typename T, typename D>
struct RmsNormBackward {
  Tensor<T, D> x = {};
  Tensor<T, D> weight = {};
  Tensor<T, D> rstd = {};
  Tensor<T, D> dy = {};
  Tensor<T, D> dx = {};  // out
  bool accumulate_dx = false;
  Tensor<T, D> dweight = {};  // out
  bool accumulate_dweight = false;
};
template <typename T, typename D>
void rms_norm_backward(const RmsNormBackward<T, D>& pass);

}  // namespace trireme::ops
