#pragma once

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops {

// A product by kernels of our own, of float, bfloat16 or float16, the result of these or of float: half operands become floats
// while they are packed, and a half result is rounded once. Not of a b that is packed already. A result's bits depend on its
// row of a, its column of b and the instruction set alone, whatever the number of threads.
template <typename T, typename C>
void run_packed_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c);

// Of a sum: it begins anew after so many products of k.
std::int64_t depth_of_block(std::int64_t k);

// Whether it is the quickest for operands of float.
bool prefers_packed_product(const MatmulShape& shape);

}  // namespace trireme::ops
