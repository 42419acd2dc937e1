#pragma once

#include <cuda_runtime_api.h>

#include "ops/search/sort_body.hpp"

// Launches of the bodies of sort_body.hpp. T: float, double, bfloat16, float16, std::int32_t, std::int64_t.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t rank_elements(const RankElements<T>& body, cudaStream_t stream);
cudaError_t compare_elements(std::int64_t rows, const CompareElements& body, cudaStream_t stream);
template <typename T>
cudaError_t take_ranked(const TakeRanked<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
