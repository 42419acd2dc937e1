#pragma once

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops {

// Whether b is transposed and there are so few rows of a, as in generation, that to pack b would take longer than to multiply.
bool has_few_rows(const MatmulShape& shape);

// That product of bfloat16 or float16, whose bits are those of run_packed_product(): the same for every number of rows.
template <typename T, typename C>
void run_few_rows_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c);

}  // namespace trireme::ops
