#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/core/dtype.hpp"

// Launches of sums in two stages: parts first, then their total. The caller provides the memory. T is float, double, bfloat16
// or float16.
namespace trireme::ops::cuda {

// The number of parts that rows and elements are cut into; it depends on the sizes and the alignment alone.
std::int64_t num_row_parts(std::int64_t rows);
std::int64_t num_sum_parts(std::int64_t count);

// sums[parts, width] of x[rows, width].
template <typename T>
cudaError_t sum_row_parts(const T* x, std::int64_t rows, std::int64_t width, std::int64_t parts, Accumulate<T>* sums,
                          cudaStream_t stream);
// columns[width] of x[rows, width], for few rows.
template <typename T>
cudaError_t sum_few_rows(const T* x, std::int64_t rows, std::int64_t width, Accumulate<T>* columns, bool accumulate,
                         cudaStream_t stream);

// *total is on the GPU, as sums[num_sum_parts(count)]; with `accumulate` the sum is added to it.
template <typename T>
cudaError_t sum(const T* x, std::int64_t count, double* sums, double* total, cudaStream_t stream);
template <typename T>
cudaError_t sum_of_squares(const T* x, std::int64_t count, double* sums, double* total, bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
