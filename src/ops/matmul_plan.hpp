#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// A product c[m, n] (+)= a[m, k] b[k, n] (+ bias[n]) of matrices; a transposed operand is stored as [k, m] or [n, k].
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;                // float32
  bool packed_b = false;            // b is what pack_b() made of it
  DType operands = DType::float32;  // of a and b
  DType result = DType::float32;    // of c

  auto operator<=>(const MatmulShape&) const = default;
};

// Whether oneDNN multiplies such operands on this processor.
bool has_matmul(DType operands);

// Runs it with oneDNN. What oneDNN prepares for a shape is kept by the calling thread.
void run_matmul(const MatmulShape& shape, const void* a, const void* b, const float* bias, void* c);

// b in the layout that the product of a shape with packed_b wants: for a matrix that many products use.
Tensor<float> pack_b(const MatmulShape& shape, const float* b);

}  // namespace trireme::ops
