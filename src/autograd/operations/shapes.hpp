#pragma once

#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/shape.hpp"

namespace trireme {

inline Shape with_last_dim(const Shape& shape, std::int64_t last) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  require(!dims.empty(), "a shape without dims has no last dim");
  dims.back() = last;
  return Shape(dims);
}

inline Shape with_one_more_dim(const Shape& shape, std::int64_t last) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.push_back(last);
  return Shape(dims);
}

// Checks the shapes of x[..., in] weight[out, in]^T.
inline void require_product(std::string_view operation, const Shape& x, const Shape& weight) {
  require(weight.size() == 2 && x.size() >= 1 && x.back() == weight[1], "{}: x {} does not fit a weight {} of [out, in]",
          operation, x, weight);
}

}  // namespace trireme
