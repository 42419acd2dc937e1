#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme::ops {

// A product c[m, n] (+)= a[m, k] b[k, n] (+ bias[n]) of matrices; a transposed operand is stored as [k, m] or [n, k].
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;                // in the type of sums
  bool inference = false;           // LinearUse::inference
  bool packed_b = false;            // b is a result of pack_b(); on CPUs
  DType operands = DType::float32;  // of a and b
  DType result = DType::float32;    // of c

  auto operator<=>(const MatmulShape&) const = default;
};

// The shape of c = a b. Leading dims of a, b and c are folded into rows. Throws if the shapes do not fit.
template <typename T, typename C>
MatmulShape matmul_shape(const Shape& a, const Shape& b, const Shape& c, const MatmulOptions& options) {
  require(a.size() > 0 && b.size() > 0 && c.size() > 0, "matmul: a scalar is no matrix");
  MatmulShape shape{.m = a.rows(),
                    .n = b.back(),
                    .k = a.back(),
                    .transpose_a = options.transpose_a,
                    .transpose_b = options.transpose_b,
                    .accumulate = options.accumulate,
                    .operands = dtype_of<T>,
                    .result = dtype_of<C>};
  std::int64_t rows_of_b = b.rows();
  if (options.transpose_a) std::swap(shape.m, shape.k);
  if (options.transpose_b) std::swap(shape.n, rows_of_b);
  require(shape.k == rows_of_b && shape.m == c.rows() && shape.n == c.back(),
          "matmul: c {} = a {}{} b {}{} does not fit: a is [{}, {}], b is [{}, {}], c is [{}, {}]", c, a,
          options.transpose_a ? " transposed" : "", b, options.transpose_b ? " transposed" : "", shape.m, shape.k, rows_of_b,
          shape.n, c.rows(), c.back());
  return shape;
}

}  // namespace trireme::ops
