#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y[..., width] = weight[index[...]]; an index outside [0, rows of weight) is an error that names its place. On a GPU, for
// which the host does not wait, its row of y is NaN and it has no gradient.
template <typename T, typename D>
TRIREME_EXPORT void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y,
                              bool accumulate = false);

// dweight[index] += dy; without `accumulate` all other rows become zero. Rows are added in an order that follows from the index
// alone: on the CPU one after another, on a GPU in sums of up to 32. Nothing is added to the row `padding`.
template <typename T, typename D>
TRIREME_EXPORT void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight,
                                       bool accumulate, std::optional<std::int32_t> padding = {});

// The row of a table that `padding` names: negative numbers count from its end. Error{invalid_argument} where it has no such
// row.
std::optional<std::int32_t> padding_row(std::optional<std::int32_t> padding, std::int64_t rows);

}  // namespace ops
}  // namespace trireme
