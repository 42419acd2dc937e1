#pragma once

#include <cuda_runtime_api.h>

#include "ops/matmul/float8_body.hpp"

// Launches: T is float or bfloat16, F float8_e4m3 or float8_e5m2.
namespace trireme::ops::cuda {

std::int64_t num_amax_parts(std::int64_t count);

// amaxes[num_amax_parts(count)], as computed by AmaxParts.
template <typename T>
cudaError_t amax_parts(const T* x, std::int64_t count, const Amaxes& known, float* amaxes, cudaStream_t stream);
cudaError_t largest_amax(const LargestAmax& body, cudaStream_t stream);
template <typename F>
cudaError_t float8_scale(const ScaleOfAmaxes<F>& body, cudaStream_t stream);
cudaError_t push_amax(const PushAmax& body, cudaStream_t stream);
// All pointers are aligned to packs.
template <typename T, typename F>
cudaError_t quantize(const QuantizeTile<T, F>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
