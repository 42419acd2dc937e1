#pragma once

#include <concepts>
#include <utility>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

// Normalisation of Variables. T: float, double, bfloat16, float16. Weights and biases are Accumulate<T>: float for bfloat16 and
// float16.
namespace trireme TRIREME_EXPORT {

// Normalises over the last `dims` dims together. weight and bias have these dims and may be undefined. Half types are computed
// in float.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                                         const Variable<Accumulate<T>, D>& bias, double epsilon, int dims = 1);

// layer_norm() of a float variable, rounded to T for the matrix product that follows.
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) TRIREME_EXPORT Variable<T, D> layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                                   const Variable<Accumulate<T>, D>& weight,
                                                                                   const Variable<Accumulate<T>, D>& bias,
                                                                                   double epsilon, int dims = 1);

// Returns {x + residual, layer_norm(x + residual)} in one pass.
template <typename T, typename D>
TRIREME_EXPORT std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_layer_norm(
    const Variable<Accumulate<T>, D>& x, const Variable<T, D>& residual, const Variable<Accumulate<T>, D>& weight,
    const Variable<Accumulate<T>, D>& bias, double epsilon);

// x / sqrt(average of x^2 over the last dim + epsilon) * weight; weight[width] may be undefined. As for layer_norm, there are
// forms that round to T and that add a residual.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> rms_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight, double epsilon);
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) TRIREME_EXPORT Variable<T, D> rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                                 const Variable<Accumulate<T>, D>& weight,
                                                                                 double epsilon);
template <typename T, typename D>
TRIREME_EXPORT std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                                       const Variable<T, D>& residual,
                                                                                       const Variable<Accumulate<T>, D>& weight,
                                                                                       double epsilon);

// Moving averages [channels] over the batches of training, for evaluation. Training updates both tensors in place, unless a
// mean or a variance of the batch is inf or nan. In this case, the optimizer also skips the step of a float16 model.
template <typename A, typename D = Cpu>
struct RunningStatistics {
  Tensor<A, D> mean = {};
  Tensor<A, D> var = {};  // unbiased
};

struct BatchNormArguments {
  bool training = true;   // normalise by the batch; otherwise by the running statistics
  double momentum = 0.1;  // new average = (1 - momentum) * old average + momentum * batch
  double epsilon = 1e-5;  // is added to the variance
  Axis axis = {};         // normalises over the batch of all its ranks; ranks may have different numbers of rows, or none
};

// Normalises x [..., channels] over all rows: (x - mean) / sqrt(variance + epsilon) * weight + bias. weight and bias [channels]
// may be undefined; in training the running statistics may be undefined too. Training on fewer than two rows is an error.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> batch_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                                         const Variable<Accumulate<T>, D>& bias,
                                         const RunningStatistics<Accumulate<T>, D>& running,
                                         const BatchNormArguments& options = {});

// relu(batch_norm(x)) in as many passes over memory as batch_norm(x).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> batch_norm_relu(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                                              const Variable<Accumulate<T>, D>& bias,
                                              const RunningStatistics<Accumulate<T>, D>& running,
                                              const BatchNormArguments& options = {});

// relu(batch_norm(x) + residual), the end of a residual block.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> batch_norm_add_relu(const Variable<T, D>& x, const Variable<T, D>& residual,
                                                  const Variable<Accumulate<T>, D>& weight,
                                                  const Variable<Accumulate<T>, D>& bias,
                                                  const RunningStatistics<Accumulate<T>, D>& running,
                                                  const BatchNormArguments& options = {});

// Normalises each sample of x [batch, ..., channels] over each of `groups` equal parts of the channels. The result of a sample
// does not depend on the other samples of the batch. It is the same in training and in evaluation.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> group_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                                         const Variable<Accumulate<T>, D>& bias, int groups, double epsilon = 1e-5);

}  // namespace trireme
