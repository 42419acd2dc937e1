#pragma once

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops {

// A product by the library's own kernels. T: float, bfloat16, float16; C: T or float. Half operands are converted to float when
// they are packed, and a half result is rounded once. b may not be packed already. The bits of an element depend on its row of
// a, its column of b and the instruction set alone, for any number of threads.
template <typename T, typename C>
void run_packed_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c);

// After so many products of k a new partial sum begins.
std::int64_t depth_of_block(std::int64_t k);

// Whether run_packed_product() is fastest for operands of float.
bool prefers_packed_product(const MatmulShape& shape);

}  // namespace trireme::ops
