#pragma once

#include <cuda_runtime_api.h>

#include "ops/reduce/reductions_body.hpp"

// Launches of the bodies of reductions_body.hpp.
namespace trireme::ops::cuda {

// The number of parts that the elements of each result are cut into: enough for a GPU, but each with enough work.
std::int64_t num_reduce_parts(const ReduceSizes& sizes);

// Likewise the number of chunks of neighbours, each of which reads the results of all others.
std::int64_t num_chunks(const ReduceSizes& sizes);

// T: float, double, bfloat16, float16, std::int32_t, std::int64_t, bool.
template <typename T>
cudaError_t reduce_parts(const ReduceParts<T>& body, cudaStream_t stream);

template <typename Y, typename V>
cudaError_t finish(std::int64_t count, const FinishReduction<Y, V>& body, cudaStream_t stream);

// T: float, double, bfloat16, float16.
template <typename T>
cudaError_t gradient_scale(std::int64_t count, const GradientScale<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t reduction_gradient(const ReductionGradient<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t chunk_products(const ChunkProduct<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t product_gradient(const ProductGradient<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
