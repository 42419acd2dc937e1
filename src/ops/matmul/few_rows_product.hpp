#pragma once

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops {

// Whether b is transposed and a has so few rows, as in generation, that packing b would take longer than the product. For float
// only with LinearUse::inference.
bool has_few_rows(const MatmulShape& shape);

// Computes such a product. For half types the bits are those of run_packed_product(); for float they are the same for every
// number of rows.
template <typename T, typename C>
void run_few_rows_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c);

}  // namespace trireme::ops
