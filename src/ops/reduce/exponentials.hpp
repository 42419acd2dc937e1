#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// A row's largest element and sum(exp(x - largest)). A log-sum-exp would lose small differences if x is large.
template <typename A>
struct Exponentials {
  A largest;
  A sum;
};

// The exponentials of one row, stored as [2, rows].
template <typename A>
TRIREME_HOST_DEVICE Exponentials<A> exponentials_at(const A* exponentials, std::int64_t rows, std::int64_t row) {
  return {exponentials[row], exponentials[rows + row]};
}
template <typename A>
TRIREME_HOST_DEVICE void keep_exponentials(const Exponentials<A>& of_row, A* exponentials, std::int64_t rows,
                                           std::int64_t row) {
  exponentials[row] = of_row.largest;
  exponentials[rows + row] = of_row.sum;
}

}  // namespace trireme::ops
