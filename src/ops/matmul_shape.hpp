#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// A product c[m, n] (+)= a[m, k] b[k, n] (+ bias[n]) of matrices; a transposed operand is stored as [k, m] or [n, k].
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;                // of the type that sums have
  bool packed_b = false;            // b is what pack_b() made of it: on CPUs
  DType operands = DType::float32;  // of a and b
  DType result = DType::float32;    // of c

  auto operator<=>(const MatmulShape&) const = default;
};

}  // namespace trireme::ops
