#pragma once

#include <cuda_runtime_api.h>

#include "ops/search/search_body.hpp"

// Launches of the bodies of search_body.hpp.
namespace trireme::ops::cuda {

// T: float, double, bfloat16, float16, std::int32_t, std::int64_t.
template <typename T>
cudaError_t first_extreme(const FirstExtreme<T>& body, cudaStream_t stream);

template <typename T>
cudaError_t take(std::int64_t count, const Take<T>& body, cudaStream_t stream);

// T: float, double, bfloat16, float16.
template <typename T>
cudaError_t take_gradient(std::int64_t count, const TakeGradient<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
