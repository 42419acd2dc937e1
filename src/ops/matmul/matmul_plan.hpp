#pragma once

#include "ops/matmul/matmul_shape.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// Whether this processor multiplies such operands: oneDNN does it for bfloat16 without such instructions too, several times
// slower than in float.
bool has_matmul(DType operands);

// Runs it with oneDNN. What oneDNN prepares for a shape is kept by the calling thread.
void run_matmul(const MatmulShape& shape, const void* a, const void* b, const float* bias, void* c);

// b in the layout that the product of a shape with packed_b wants: for a matrix that many products use.
Tensor<float> pack_b(const MatmulShape& shape, const float* b);

}  // namespace trireme::ops
