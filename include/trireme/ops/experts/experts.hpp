#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/experts/expert_rows.hpp"
#include "trireme/tensor/tensor.hpp"

// Operations of a mixture of experts on the rows of its tokens. T: float, double, bfloat16, float16, with sums in float for the
// last two. On a GPU all of these operations throw Error.
namespace trireme TRIREME_EXPORT {
namespace ops {

// x[tokens, width] -> y[rows, width]: each row is a copy of its token.
template <typename T, typename D>
TRIREME_EXPORT void take_expert_rows(const ExpertRows& rows, const Tensor<T, D>& x, Tensor<T, D>& y);
// dx[token] = the sum of dy over the rows of the token, or += with `accumulate`.
template <typename T, typename D>
TRIREME_EXPORT void take_expert_rows_backward(const ExpertRows& rows, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                              bool accumulate);

// y[rows, out] = x[rows, in] weight_e[out, in]^T, where e is the row's expert; weight[experts * out, in] has all weight_e.
template <typename T, typename D>
TRIREME_EXPORT void expert_linear(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<T, D>& weight, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void expert_linear_input_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& weight,
                                                 Tensor<T, D>& dx, bool accumulate);
// The gradient of an expert without rows is 0.
template <typename T, typename D>
TRIREME_EXPORT void expert_linear_weight_gradient(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                                                  Tensor<Accumulate<T>, D>& dweight, bool accumulate);

// y[tokens, width] = the sum of weights[token, choice] * x[row] over the rows of the token; weights[tokens, choices].
template <typename T, typename D>
TRIREME_EXPORT void combine_expert_rows(const ExpertRows& rows, const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& weights,
                                        Tensor<T, D>& y);
// dx[rows, width] = weight * dy of the token. dweights = the dot products of x and dy, 0 for a choice without a row. dx or
// dweights may be undefined.
template <typename T, typename D>
TRIREME_EXPORT void combine_expert_rows_backward(const ExpertRows& rows, const Tensor<T, D>& dy, const Tensor<T, D>& x,
                                                 const Tensor<Accumulate<T>, D>& weights, Tensor<T, D>& dx,
                                                 Tensor<Accumulate<T>, D>& dweights);

}  // namespace ops
}  // namespace trireme
