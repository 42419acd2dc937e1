#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Gathers the rows of all ranks in rank order: x[rows, ...] -> [ranks * rows, ...]. All ranks must have the same number of
// rows. Use gather_batch() for losses that compare samples of different ranks, when each rank computes its own part of the
// loss: the gradient of a row is the sum of the contributions of all ranks. All ranks must make these calls in the same order,
// in the forward and in the backward pass. The axis must outlive the tape. T: float, double.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> gather_batch(const Variable<T, D>& x, const Collectives& axis);

}  // namespace trireme
