#pragma once

#include <cuda_runtime_api.h>

#include "ops/array/arranged_copy.hpp"
#include "ops/array/line_body.hpp"
#include "ops/array/triangle_body.hpp"

// Launches: T is float, double, bfloat16, float16, std::int32_t or std::int64_t.
namespace trireme::ops::cuda {

// Words of 1, 2, 4, 8 or 16 bytes.
cudaError_t move_strided(const ArrangedCopy& copy, int word_bytes, const void* x, void* y, cudaStream_t stream);
template <typename T>
cudaError_t add_strided(const ArrangedCopy& copy, const T* x, T* y, cudaStream_t stream);
template <typename T>
cudaError_t sum_strided(const ArrangedCopy& copy, const T* x, T* y, bool accumulate, cudaStream_t stream);

// Elements of 1, 2, 4 or 8 bytes.
cudaError_t take_triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y,
                          cudaStream_t stream);
template <typename T>
cudaError_t fill_line(const FillLine<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
