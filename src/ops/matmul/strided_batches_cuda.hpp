#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/shape.hpp"

namespace trireme::ops::cuda {

// One number for each operand of a product c = a b.
struct OperandPlaces {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;

  bool operator==(const OperandPlaces&) const = default;
};

// Products of matrices with constant strides: product i takes matrix first + i * stride of each operand.
struct StridedBatch {
  std::int64_t count = 1;
  OperandPlaces first;
  OperandPlaces stride;
  bool accumulate = false;  // adds to the results of earlier batches
};

// The products over all matrices of `batch`, whose last two dims are ignored, in as few batches as strides allow. They are to
// be run in order. Dims that an operand does not have, or that are 1, are broadcast; results are summed over such dims of c.
std::vector<StridedBatch> strided_batches(const Shape& a, const Shape& b, const Shape& c, const Shape& batch);

}  // namespace trireme::ops::cuda
