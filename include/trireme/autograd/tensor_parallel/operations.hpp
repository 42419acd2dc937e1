#pragma once

#include <cstdint>

#include "trireme/autograd/operations/loss.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

// Operations of layers that are split over the ranks of a tensor axis (Shoeybi et al. 2019, arXiv 1909.08053). All ranks call
// these operations in the same order, in the forward and in the backward pass. With sequence_parallel (Korthikanti et al. 2022,
// arXiv 2205.05198), "own rows" are this rank's equal part of the rows of a matrix [rows, width], in rank order. Otherwise they
// are all rows, in any shape. Every operation is complete when its function returns. The axis must outlive the tape.
namespace trireme TRIREME_EXPORT {

// This rank's part of `count` things: contiguous, in rank order, as even as possible.
Range even_part(std::int64_t count, const Collectives& axis);

// Whether the ranks can divide the rows evenly: each part must begin where the part of a collective begins, at a multiple of 16
// elements.
bool divides_rows(std::int64_t rows, std::int64_t width, const Collectives& axis);

// x weight^T + bias: x[..., in] (own rows), weight[out_part, in], bias[out_part] -> [..., out_part] (all rows). The parts of dx
// are summed while the gradient of the weight is computed.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> column_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                                     const Variable<Accumulate<T>, D>& bias, const Collectives& axis,
                                                     bool sequence_parallel);

// x weight^T, summed over the ranks, + bias: x[..., in_part] (all rows), weight[out, in_part], bias[out] -> [..., out] (own
// rows).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> row_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                                  const Variable<Accumulate<T>, D>& bias, const Collectives& axis,
                                                  bool sequence_parallel);

// Looks up the rows index[...] of a table -> [..., width] (own rows). The table has `table_rows` rows; weight[rows, width]
// holds the rows from first_row on.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> vocab_parallel_embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                                       std::int64_t first_row, std::int64_t table_rows, const Collectives& axis,
                                                       bool sequence_parallel);

// Softmax cross-entropy of logits[..., own_classes] (all rows). The rank's own classes start at first_class; their number may
// differ between ranks. Every rank returns the same loss.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> vocab_parallel_cross_entropy(const Variable<T, D>& logits,
                                                                   const Tensor<std::int32_t, D>& targets,
                                                                   std::int64_t first_class, std::int64_t classes,
                                                                   const Collectives& axis);

// Returns x and sums its gradient over the ranks. Use it for a value that all ranks hold and that each rank uses for its own
// part of the work.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> sum_gradient(const Variable<T, D>& x, const Collectives& axis);

// Sums x over the ranks: [..., width] (all rows) -> [..., width] (own rows).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> sum_parts(const Variable<T, D>& x, const Collectives& axis, bool sequence_parallel);

// Gathers all rows from the ranks' own rows, for a result that all ranks compute in the same way.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> gather_rows(const Variable<T, D>& x, const Collectives& axis);

}  // namespace trireme
