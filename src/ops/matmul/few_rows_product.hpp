#pragma once

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops {

// Whether b is transposed and there are so few rows of a, as in generation, that to pack b would take longer than to multiply;
// of float for inference alone.
bool has_few_rows(const MatmulShape& shape);

// That product. The bits of half types are those of run_packed_product(), those of float the same for every number of rows.
template <typename T, typename C>
void run_few_rows_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c);

}  // namespace trireme::ops
