#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/experts/experts.hpp"

// The functions of ops/experts/experts.hpp on variables. T: float, double, bfloat16, float16.
namespace trireme TRIREME_EXPORT {

using ExpertRows = std::shared_ptr<const ops::ExpertRows>;

// x[tokens, width] -> [rows, width]: each row is a copy of its token.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> take_expert_rows(const Variable<T, D>& x, const ExpertRows& rows);

// x[rows, in] weight_e[out, in]^T -> [rows, out], with the weight of the row's expert; weight[experts * out, in]. An expert
// without rows gets a gradient of 0.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> expert_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                            const ExpertRows& rows);

// x[rows, width] -> [tokens, width]: the sum of the rows of a token, each multiplied by its weight in weights[tokens, choices].
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> combine_expert_rows(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weights,
                                                  const ExpertRows& rows);

// The counts of an all-to-all: how many rows this rank sends to each rank of an axis, and how many it receives from each.
struct RowExchange {
  std::vector<std::int64_t> to;
  std::vector<std::int64_t> from;
};

// x[rows, width] has the rows for rank 0 first; the result [rows, width] has the rows from rank 0 first. All ranks must make
// the call, in the forward and in the backward pass. The axis must outlive the tape.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> exchange_rows(const Variable<T, D>& x, const RowExchange& exchange, const Collectives& axis);

}  // namespace trireme
