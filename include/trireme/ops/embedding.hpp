#pragma once

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// y[..., width] = weight[index[...]]; an index outside [0, rows of weight) is an error that names its place.
template <typename T, typename D>
void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y, bool accumulate = false);

// dweight[index] += dy; without `accumulate` all other rows become zero. Rows are added in index order for any thread count.
// Nothing is added to the row `padding`; below 0 there is none.
template <typename T, typename D>
void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight, bool accumulate,
                        std::int32_t padding = -1);

}  // namespace trireme::ops
