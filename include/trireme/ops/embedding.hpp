#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// y[..., width] = weight[index[...]]; an index outside [0, rows of weight) is an error that names its place. On a GPU, for
// which the host does not wait, its row of y is NaN and it has no gradient.
template <typename T, typename D>
void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y, bool accumulate = false);

// dweight[index] += dy; without `accumulate` all other rows become zero. Rows are added in an order that follows from the index
// alone: on the CPU one after another, on a GPU in sums of up to 32. Nothing is added to the row `padding`; below 0 there is
// none.
template <typename T, typename D>
void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight, bool accumulate,
                        std::int32_t padding = -1);

}  // namespace trireme::ops
