#pragma once

#include <string_view>
#include <vector>

#include "ops/reduce/reduce_sizes.hpp"
#include "trireme/core/dims.hpp"
#include "trireme/core/shape.hpp"

namespace trireme::ops {

// Two neighbouring dims of `shape` that change places.
struct Exchange {
  Shape shape;
  int first;
};

// How a tensor is reduced over some dims: transposed copies bring them together, then the sizes hold. Dims that are neighbours
// already need no copy.
struct ReducePlan {
  std::vector<Exchange> exchanges;
  ReduceSizes sizes;
};

// Throws where a dim does not exist or is named twice: "sum: a tensor of shape [2, 3] has no dim 2". A scalar may be reduced
// over its dim 0.
ReducePlan reduce_plan(std::string_view op, const Shape& shape, const Dims& dims);

}  // namespace trireme::ops
