#pragma once

#include <cuda_runtime_api.h>

#include "ops/search/cumulative_body.hpp"

// Launches of the bodies of cumulative_body.hpp. T: float, double, bfloat16, float16, and for the first two functions also
// std::int32_t and std::int64_t, with sums in std::int64_t.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t chunk_totals(const ChunkTotals<T>& body, cudaStream_t stream);
template <typename T, typename Y>
cudaError_t cumulate_chunk(const CumulateChunk<T, Y>& body, cudaStream_t stream);
template <typename T>
cudaError_t cumprod_gradient(const CumprodGradient<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
