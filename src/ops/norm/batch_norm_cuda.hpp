#pragma once

#include <cuda_runtime_api.h>

#include "ops/norm/batch_norm_body.hpp"

// Launches: T is float, double, bfloat16 or float16, A the type that T is computed in.
namespace trireme::ops::cuda {

// The number of parts that the rows are cut into. The next two functions compute the sums [parts, 2, channels].
std::int64_t num_channel_parts(std::int64_t rows, std::int64_t channels);
template <typename T>
cudaError_t sum_channel_parts(const T* x, std::int64_t rows, std::int64_t channels, std::int64_t parts, double* sums,
                              cudaStream_t stream);
template <typename T>
cudaError_t sum_channel_gradient_parts(const BatchNormSumPointers<T>& pass, std::int64_t rows, std::int64_t channels,
                                       std::int64_t parts, double* sums, cudaStream_t stream);

template <typename A>
cudaError_t batch_statistics(const BatchStatistics<A>& body, cudaStream_t stream);
template <typename A>
cudaError_t running_statistics(const RunningStatisticsOfChannel<A>& body, std::int64_t channels, cudaStream_t stream);
template <typename A>
cudaError_t batch_norm_weight_gradient(const double* sums, std::int64_t channels, A* gradient, bool accumulate,
                                       cudaStream_t stream);

template <typename T>
cudaError_t batch_norm(const BatchNormPointers<T>& pass, std::int64_t rows, std::int64_t channels, cudaStream_t stream);
template <typename T>
cudaError_t batch_norm_backward(const BatchNormGradientPointers<T>& pass, std::int64_t rows, std::int64_t channels,
                                cudaStream_t stream);

}  // namespace trireme::ops::cuda
