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

// Products of matrices at even distances: product i takes matrix first + i * stride of each operand.
struct StridedBatch {
  std::int64_t count = 1;
  OperandPlaces first;
  OperandPlaces stride;
  bool accumulate = false;  // to what earlier batches have written
};

// The products over all matrices of `batch`, whose last two dims are not looked at, in as few batches as strides allow, to be
// run in order. A dim that an operand has not, or that is 1, is broadcast; over those of c results are summed.
std::vector<StridedBatch> strided_batches(const Shape& a, const Shape& b, const Shape& c, const Shape& batch);

}  // namespace trireme::ops::cuda
