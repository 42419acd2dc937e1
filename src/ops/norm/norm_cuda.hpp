#pragma once

#include <cuda_runtime_api.h>

#include "ops/norm/norm_body.hpp"

// Launches: T is float, double, bfloat16 or float16; `centers` is true for the layer norm.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t norm_forward(const NormForwardPointers<T>& pass, bool centers, std::int64_t rows, cudaStream_t stream);

// The number of parts that norm_backward cuts the rows into: as many as the GPU runs at once.
template <typename T>
std::int64_t num_norm_parts(std::int64_t rows, std::int64_t width);

// dweights and dbiases [parts, width] become the sums of equal parts of the rows; null: not computed.
template <typename T>
cudaError_t norm_backward(const NormBackwardPointers<T>& pass, bool centers, std::int64_t rows, std::int64_t parts,
                          Accumulate<T>* dweights, Accumulate<T>* dbiases, cudaStream_t stream);

}  // namespace trireme::ops::cuda
