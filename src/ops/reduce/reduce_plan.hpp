#pragma once

#include <string_view>
#include <vector>

#include "ops/reduce/reduce_sizes.hpp"
#include "trireme/core/dims.hpp"
#include "trireme/core/shape.hpp"

namespace trireme::ops {

// How a tensor is reduced over some dims. Where these are no neighbours a copy brings them together: its dim i is the tensor's
// dim order[i]. Then the sizes hold.
struct ReducePlan {
  std::vector<int> order;  // empty: no copy is made
  ReduceSizes sizes;
};

// Throws where a dim does not exist or is named twice: "sum: a tensor of shape [2, 3] has no dim 2". A scalar may be reduced
// over its dim 0.
ReducePlan reduce_plan(std::string_view op, const Shape& shape, const Dims& dims);

}  // namespace trireme::ops
