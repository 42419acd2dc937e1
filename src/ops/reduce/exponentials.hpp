#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// A row's largest element and sum(exp(x - largest)): two numbers, since their log-sum-exp would round small differences away
// beside large x.
template <typename A>
struct Exponentials {
  A largest;
  A sum;
};

// Those of one row, in memory of [2, rows].
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
