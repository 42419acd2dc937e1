#pragma once

#include <cstdint>
#include <vector>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Columns [first, first + count) of a matrix.
struct LowRankColumns {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Adds scale * u_i b_i^T to some columns of y[..., out], for each i: u[..., n * rank] has the u_i side by side, b[sum of
// counts, rank] the b_i one below the other. y's memory becomes the result's: y is used no more, and no operation has kept it.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> add_low_rank(const Variable<T, D>& y, const Variable<T, D>& u,
                                           const Variable<T, D, Accumulate<T>>& b, const std::vector<LowRankColumns>& columns,
                                           double scale);

}  // namespace trireme
