#pragma once

#include <cstdint>

#include "trireme/autograd/operations/loss.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

// Operations of layers that are split over the ranks of a tensor axis (Shoeybi et al. 2019, arXiv 1909.08053). All ranks call
// them in the same order, in backward too. "Own rows": with sequence_parallel (Korthikanti et al. 2022, arXiv 2205.05198) this
// rank's equal part of the rows of a matrix [rows, width], in rank order; otherwise all rows, in any shape. Every operation is
// complete when it returns. The axis must outlive the tape.
namespace trireme TRIREME_EXPORT {

// This rank's part of `count` things: contiguous, in rank order, as even as can be.
Range even_part(std::int64_t count, const Collectives& axis);

// Whether ranks can have equally many of the rows: parts that begin where those of the collectives do, at 16 elements.
bool divides_rows(std::int64_t rows, std::int64_t width, const Collectives& axis);

// x (own rows)[..., in] weight[part of out, in]^T + bias[part of out] -> (all rows)[..., part of out]. The parts of dx are
// summed while the gradient of the weight is computed.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> column_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                                     const Variable<Accumulate<T>, D>& bias, const Collectives& axis,
                                                     bool sequence_parallel);

// x (all rows)[..., part of in] weight[out, part of in]^T, summed over the ranks, + bias[out] -> (own rows)[..., out].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> row_parallel_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                                  const Variable<Accumulate<T>, D>& bias, const Collectives& axis,
                                                  bool sequence_parallel);

// index[...] into a table of `table_rows` rows of which weight[rows, width] holds those from first_row on -> (own rows)[...,
// width].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> vocab_parallel_embedding(const Tensor<std::int32_t, D>& index, const Variable<T, D>& weight,
                                                       std::int64_t first_row, std::int64_t table_rows, const Collectives& axis,
                                                       bool sequence_parallel);

// Softmax cross-entropy of logits (all rows)[..., part of the classes], which are those from first_class on; the ranks need not
// hold equally many. Every rank returns the same loss.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> vocab_parallel_cross_entropy(const Variable<T, D>& logits,
                                                                   const Tensor<std::int32_t, D>& targets,
                                                                   std::int64_t first_class, std::int64_t classes,
                                                                   const Collectives& axis);

// Returns x and sums its gradient over the ranks. For what all ranks hold and each uses for its own part of the work.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> sum_gradient(const Variable<T, D>& x, const Collectives& axis);

// Sums x over the ranks: (all rows)[..., width] -> (own rows)[..., width].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> sum_parts(const Variable<T, D>& x, const Collectives& axis, bool sequence_parallel);

// Gathers all rows from the ranks' own rows, for a result that all ranks compute alike.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> gather_rows(const Variable<T, D>& x, const Collectives& axis);

}  // namespace trireme
