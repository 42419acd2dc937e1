#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Group norm of x [batch, ..., channels]: y = (x - mean) * rstd * weight + bias, where mean and rstd [batch, groups] are over
// a sample's elements in each of `groups` equal parts of the channels (Wu, He 2018, arXiv 1803.08494). An undefined weight
// [channels] is 1, an undefined bias [channels] is 0. T: float, double, bfloat16, float16; weight and bias are float for the
// last two.
template <typename T, typename D>
struct GroupNormForward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  int groups = 1;
  Tensor<A, D> weight = {};
  Tensor<A, D> bias = {};
  double epsilon = 1e-5;
  Tensor<T, D> y = {};          // out
  Tensor<double, D> mean = {};  // out
  Tensor<double, D> rstd = {};  // out
};
template <typename T, typename D>
TRIREME_EXPORT void group_norm(const GroupNormForward<T, D>& pass);

// dweight and dbias may be undefined. `accumulate_*` adds to the gradient instead of overwriting it.
template <typename T, typename D>
struct GroupNormBackward {
  using A = Accumulate<T>;
  Tensor<T, D> x = {};
  int groups = 1;
  Tensor<A, D> weight = {};
  Tensor<double, D> mean = {};
  Tensor<double, D> rstd = {};
  Tensor<T, D> dy = {};
  Tensor<T, D> dx = {};  // out
  bool accumulate_dx = false;
  Tensor<A, D> dweight = {};  // out
  bool accumulate_dweight = false;
  Tensor<A, D> dbias = {};  // out
  bool accumulate_dbias = false;
};
template <typename T, typename D>
TRIREME_EXPORT void group_norm_backward(const GroupNormBackward<T, D>& pass);

}  // namespace ops
}  // namespace trireme
