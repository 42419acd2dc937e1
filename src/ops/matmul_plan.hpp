#pragma once

#include <compare>
#include <cstdint>

#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// A product c[m, n] (+)= a[m, k] b[k, n] (+ bias[n]) of float matrices; a transposed operand is stored as [k, m] or [n, k].
struct MatmulShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;
  bool packed_b = false;  // b is what pack_b() made of it

  auto operator<=>(const MatmulShape&) const = default;
};

// Runs it with oneDNN. What oneDNN prepares for a shape is kept by the calling thread.
void run_matmul(const MatmulShape& shape, const float* a, const float* b, const float* bias, float* c);

// b in the layout that the product of a shape with packed_b wants: for a matrix that many products use.
Tensor<float> pack_b(const MatmulShape& shape, const float* b);

}  // namespace trireme::ops
