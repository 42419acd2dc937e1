#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// y[..., width] = weight[index[...]]. An index that is not a row of weight is an error that names its place. On a GPU, where
// the host does not wait, the row of y becomes NaN and has no gradient.
template <typename T, typename D>
TRIREME_EXPORT void embedding(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, Tensor<T, D>& y,
                              bool accumulate = false);

// dweight[index] += dy; without `accumulate` all other rows become zero. The order in which rows are added depends only on the
// indices: on the CPU one after another, on a GPU in sums of up to 32 rows. The row `padding` gets no gradient.
template <typename T, typename D>
TRIREME_EXPORT void embedding_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy, Tensor<T, D>& dweight,
                                       bool accumulate, std::optional<std::int32_t> padding = {});

// Resolves `padding` to a row of a table with `rows` rows: negative numbers count from the table's end. Throws
// Error{invalid_argument} if there is no such row.
std::optional<std::int32_t> padding_row(std::optional<std::int32_t> padding, std::int64_t rows);

}  // namespace ops
}  // namespace trireme
