#pragma once

#include <string_view>
#include <vector>

#include "ops/reduce/reduce_sizes.hpp"
#include "trireme/core/dims.hpp"
#include "trireme/core/shape.hpp"

namespace trireme::ops {

// How a tensor is reduced over some dims. If these are not neighbours, the tensor is permuted first: dim i of the copy is dim
// order[i] of the tensor. `sizes` are those of the copy.
struct ReducePlan {
  std::vector<int> order;  // empty: no copy is made
  ReduceSizes sizes;
};

// Throws if a dim does not exist or is named twice: "sum: a tensor of shape [2, 3] has no dim 2". A scalar may be reduced over
// its dim 0.
ReducePlan reduce_plan(std::string_view op, const Shape& shape, const Dims& dims);

}  // namespace trireme::ops
