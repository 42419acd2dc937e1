#pragma once

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// exp(x) / sum(exp(x)) over one dim, and its logarithm, for float, double, bfloat16 and float16.
namespace trireme TRIREME_EXPORT {

// The default is the last dim; any other dim costs two transposed copies. Functions of Variables have the same names.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> softmax(const Tensor<T, D>& x, int dim = -1);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> log_softmax(const Tensor<T, D>& x, int dim = -1);

// The functions below work over the last dim; `accumulate` adds to the output.
namespace ops {

// y = exp(x) / sum(exp(x)); exactly 0 where x is -infinity. y may be x.
template <typename T, typename D>
TRIREME_EXPORT void softmax(const Tensor<T, D>& x, Tensor<T, D>& y);

// Computes dx from y, the result of the forward pass. dx may be dy.
template <typename T, typename D>
TRIREME_EXPORT void softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

// y = x - log(sum(exp(x))). y may be x.
template <typename T, typename D>
TRIREME_EXPORT void log_softmax(const Tensor<T, D>& x, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void log_softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

}  // namespace ops
}  // namespace trireme
