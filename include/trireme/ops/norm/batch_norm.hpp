#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Batch norm of x [..., channels]: every channel is normalised over all rows (Ioffe, Szegedy 2015, arXiv 1502.03167). If
// several ranks hold rows of one batch, each rank sums its own rows, and these sums are added before they are used. T: float,
// double, bfloat16, float16; weight and bias are float for the last two.

// sums [2 * channels]: for each channel the sum of its elements, then for each channel the sum of their squares.
template <typename T, typename D>
TRIREME_EXPORT void batch_norm_sums(const Tensor<T, D>& x, Tensor<double, D>& sums);

// Computes mean and rstd = 1 / sqrt(variance + epsilon) from the sums over all rows of all ranks. Updates the running
// statistics: new = (1 - momentum) * old + momentum * batch, with the unbiased variance. All running statistics stay unchanged
// if a mean or variance of the batch is inf or nan.
template <typename A, typename D>
struct BatchNormStatistics {
  Tensor<double, D> sums = {};
  double rows = 0;  // must be above 1
  double epsilon = 1e-5;
  double momentum = 0.1;
  Tensor<A, D> running_mean = {};  // in and out; may be undefined
  Tensor<A, D> running_var = {};   // likewise
  Tensor<double, D> mean = {};     // [channels], out
  Tensor<double, D> rstd = {};     // [channels], out
};
template <typename A, typename D>
TRIREME_EXPORT void batch_norm_statistics(const BatchNormStatistics<A, D>& pass);

// Computes mean and rstd [channels] from the running statistics, for evaluation.
template <typename A, typename D>
TRIREME_EXPORT void batch_norm_running_statistics(const Tensor<A, D>& running_mean, const Tensor<A, D>& running_var,
                                                  double epsilon, Tensor<double, D>& mean, Tensor<double, D>& rstd);

// y = (x - mean) * rstd * weight + bias + residual, then ReLU if `relu` is set, in one pass over memory.
template <typename T, typename D>
struct BatchNormForward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  Tensor<double, D> mean = {};  // [channels], as are rstd, weight and bias
  Tensor<double, D> rstd = {};
  Tensor<A, D> weight = {};    // may be undefined: 1
  Tensor<A, D> bias = {};      // undefined: zeros
  Tensor<T, D> residual = {};  // may be undefined
  bool relu = false;
  Tensor<T, D> y = {};  // out
};
template <typename T, typename D>
TRIREME_EXPORT void batch_norm(const BatchNormForward<T, D>& pass);

// With ReLU, dy counts only where the result was above 0. Without a residual, leave y undefined: computing the result again
// from x is faster than reading y. ReLU after a residual needs y.
template <typename T, typename D>
struct BatchNormBackward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  Tensor<double, D> mean = {};
  Tensor<double, D> rstd = {};
  Tensor<A, D> weight = {};  // may be undefined
  Tensor<A, D> bias = {};    // likewise
  bool relu = false;
  Tensor<T, D> y = {};  // the result; needed for ReLU after a residual
  Tensor<T, D> dy = {};
};

// sums [2 * channels]: for each channel the sum of dy, which is the gradient of bias; then for each channel the sum of
// dy * (x - mean) * rstd, which is the gradient of weight. dresidual, the gradient of a residual, becomes dy where dy counts
// and 0 elsewhere; it may be undefined. batch_norm_backward may take dresidual as dy, with relu = false.
template <typename T, typename D>
TRIREME_EXPORT void batch_norm_backward_sums(const BatchNormBackward<T, D>& pass, Tensor<double, D>& sums,
                                             const Tensor<T, D>& dresidual = {});

// gradient [channels] = sums [channels]. For bias pass the first half of the sums of batch_norm_backward_sums, for weight the
// second half.
template <typename A, typename D>
TRIREME_EXPORT void batch_norm_weight_gradient(const Tensor<double, D>& sums, Tensor<A, D>& gradient, bool accumulate);

// `sums` are over the rows of all ranks, and `rows` is the number of these rows. `sums` is undefined if mean and rstd do not
// depend on x (evaluation).
template <typename T, typename D>
TRIREME_EXPORT void batch_norm_backward(const BatchNormBackward<T, D>& pass, const Tensor<double, D>& sums, double rows,
                                        Tensor<T, D>& dx, bool accumulate_dx);

}  // namespace ops
}  // namespace trireme
