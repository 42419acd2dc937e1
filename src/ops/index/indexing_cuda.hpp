#pragma once

#include <cuda_runtime_api.h>

#include "ops/index/indexing_body.hpp"

// Launches: T is float, double, bfloat16, float16, std::int32_t or std::int64_t; for half types nothing is added.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t gather_elements(const GatherElements<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t put_lines(const ScatterLine<false, T>& body, cudaStream_t stream);
template <typename T>
cudaError_t add_lines(const ScatterLine<true, T>& body, cudaStream_t stream);
template <typename T>
cudaError_t extreme_lines(const ScatterExtremeLine<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t scatter_lines_backward(const ScatterLineBackward<T>& body, cudaStream_t stream);
cudaError_t widen_index(std::int64_t count, const WidenIndex& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
