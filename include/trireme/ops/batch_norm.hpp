#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// Batch norm of x [..., channels]: every channel is normalised over all rows. Ioffe, Szegedy 2015, arXiv 1502.03167.
// Where several ranks hold rows of one batch, each adds up its own and the sums are added before they are used.
// T: float, double, bfloat16, float16; weight and bias are float for the last two.

// sums [2 * channels]: of each channel's elements, then of their squares.
template <typename T, typename D>
void batch_norm_sums(const Tensor<T, D>& x, std::span<double> sums);

// y = (x - mean) * rstd * weight + bias, then + residual, then ReLU where asked for: one pass over memory.
template <typename T, typename D>
struct BatchNormForward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  Tensor<double, D> mean = {};  // [channels], as rstd, weight and bias
  Tensor<double, D> rstd = {};
  Tensor<A, D> weight = {};    // may be undefined: 1
  Tensor<A, D> bias = {};      // may be undefined: 0
  Tensor<T, D> residual = {};  // may be undefined
  bool relu = false;
  Tensor<T, D> y = {};  // out
};
template <typename T, typename D>
void batch_norm(const BatchNormForward<T, D>& pass);

template <typename T, typename D>
struct BatchNormBackward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  Tensor<double, D> mean = {};
  Tensor<double, D> rstd = {};
  Tensor<A, D> weight = {};  // may be undefined
  Tensor<T, D> y = {};       // with ReLU: dy counts where y > 0; otherwise undefined
  Tensor<T, D> dy = {};
};

// sums [2 * channels]: of dy, the gradient of bias; then of dy * (x - mean) * rstd, the gradient of weight.
template <typename T, typename D>
void batch_norm_backward_sums(const BatchNormBackward<T, D>& pass, std::span<double> sums);

// `averages`: those sums over all rows of all ranks, divided by the number of rows; empty where mean and rstd do not depend
// on x (evaluation). dresidual, which may be undefined, gets the gradient of a residual.
template <typename T, typename D>
void batch_norm_backward(const BatchNormBackward<T, D>& pass, std::span<const double> averages, Tensor<T, D>& dx,
                         bool accumulate_dx, const Tensor<T, D>& dresidual = {});

}  // namespace trireme::ops
