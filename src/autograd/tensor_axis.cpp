#include "trireme/autograd/tensor_axis.hpp"

#include <algorithm>

namespace trireme {

Range TensorAxis::part(std::int64_t count) const {
  const std::int64_t each = count / size_;
  const std::int64_t larger = count % size_;  // the first parts have one more
  const auto begin_of = [&](std::int64_t rank) { return rank * each + std::min(rank, larger); };
  return {begin_of(rank_), begin_of(rank_ + 1)};
}

}  // namespace trireme
