#include <algorithm>

#include "trireme/autograd/tensor_parallel/operations.hpp"

namespace trireme {

Range even_part(std::int64_t count, const Collectives& axis) {
  const std::int64_t each = count / axis.size();
  const std::int64_t larger = count % axis.size();  // the first parts have one more
  const auto begin_of = [&](std::int64_t rank) { return rank * each + std::min(rank, larger); };
  return {begin_of(axis.rank()), begin_of(axis.rank() + 1)};
}

bool divides_rows(std::int64_t rows, std::int64_t width, const Collectives& axis) {
  return rows % axis.size() == 0 && rows / axis.size() * width % 16 == 0;
}

}  // namespace trireme
