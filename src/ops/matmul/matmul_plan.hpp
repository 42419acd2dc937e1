#pragma once

#include "ops/matmul/matmul_shape.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// Whether this processor has instructions for products of this type. Without them oneDNN supports bfloat16 too, but several
// times slower than float.
bool has_matmul(DType operands);

// Runs a product with oneDNN. The calling thread keeps the plans that oneDNN makes for each shape.
void run_matmul(const MatmulShape& shape, const void* a, const void* b, const float* bias, void* c);

// Returns b in the layout for products with shape.packed_b, for a matrix that many products use.
Tensor<float> pack_b(const MatmulShape& shape, const float* b);

}  // namespace trireme::ops
