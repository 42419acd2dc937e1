#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The rows of all ranks, in rank order: x[rows, ...] -> [ranks * rows, ...], equally many rows of each rank. For losses that
// compare the samples of different ranks, each of which computes another part of the loss: the gradient of a row is the sum of
// what all ranks contribute to it. All ranks call it in the same order, in backward too. The axis outlives the tape. T: float,
// double.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> gather_batch(const Variable<T, D>& x, const Collectives& axis);

}  // namespace trireme
